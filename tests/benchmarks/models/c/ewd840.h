/* Termination detection in a ring (EWD 840), as in tests/models/ewd840.py, with NODES nodes. */
#define TOKEN_BITS (NODES <= 2 ? 1 : NODES <= 4 ? 2 : NODES <= 8 ? 3 : 4)
enum { BITS = 2 * NODES + TOKEN_BITS + 1, MOST = 1 + NODES + NODES * NODES + NODES };
#define ACTIVE(n) (1ULL << (n))
#define BLACK(n) (1ULL << (NODES + (n)))
#define TOKEN(n) ((u64)(n) << (2 * NODES))
#define TOKEN_AT TOKEN((1 << TOKEN_BITS) - 1)
#define TOKEN_BLACK (1ULL << (2 * NODES + TOKEN_BITS))

INLINE int initial(u64 i, u64 *s) {
    u64 colours = 1ULL << (2 * NODES);
    *s = (i % colours) | TOKEN(i / colours) | TOKEN_BLACK;
    return i < colours * NODES;
}

INLINE u64 expand(const u64 s, u64 *restrict out) {
    u64 k = 0;
    out[k] = (s & ~(TOKEN_AT | TOKEN_BLACK | BLACK(0))) | TOKEN(NODES - 1);
    k += ((s & TOKEN_AT) == 0) & ((s & (TOKEN_BLACK | BLACK(0))) != 0);
    UNROLLED for (int n = 1; n < NODES; n++) {
        u64 black = s & BLACK(n);
        u64 blackened = black << (NODES + TOKEN_BITS - n); /* into the bit of TOKEN_BLACK */
        out[k] = (s & ~(TOKEN_AT | BLACK(n))) | TOKEN(n - 1) | blackened;
        k += ((s & TOKEN_AT) == TOKEN(n)) &
             (((s & ACTIVE(n)) == 0) | (black != 0) | ((s & TOKEN_BLACK) != 0));
    }
    UNROLLED for (int n = 0; n < NODES; n++) {
        u64 active = (s & ACTIVE(n)) != 0;
        UNROLLED for (int to = 0; to < NODES; to++)
            if (to != n) out[k] = s | ACTIVE(to) | (to > n ? BLACK(n) : 0), k += active;
        out[k] = s & ~ACTIVE(n), k += active;
    }
    return k;
}

INLINE int holds(const u64 s) {
    u64 detected = (s & (TOKEN_AT | TOKEN_BLACK | ACTIVE(0) | BLACK(0))) == 0;
    return !detected | ((s & (ACTIVE(NODES) - 1)) == 0);
}
