/* Tablets behind barriers, as in tests/models/tablet_barrier.py: TABLETS of them on NODES nodes. */
enum { BITS = 3 * TABLETS * (1 + NODES) + NODES, MOST = TABLETS + NODES * TABLETS + 2 * NODES };
enum { LAST = 6 };
#define STAGE(t) (3 * (t))                     /* the lowest bit of a tablet's stage */
#define LEARNED(n, t) (3 * (((n) + 1) * TABLETS + (t)))
#define UP(n) (1ULL << (3 * TABLETS * (1 + NODES) + (n)))
#define STAGES ((1ULL << (3 * TABLETS)) - 1)   /* what a node has learned has the same shape */
#define FIELD(s, at) ((s) >> (at) & 7)

INLINE int initial(u64 i, u64 *s) {
    *s = 0;
    UNROLLED for (int n = 0; n < NODES; n++) *s |= UP(n);
    return i == 0;
}

INLINE u64 expand(const u64 s, u64 *restrict out) {
    u64 k = 0, up = 0;
    UNROLLED for (int n = 0; n < NODES; n++) up |= UP(n);
    UNROLLED for (int t = 0; t < TABLETS; t++) {
        u64 stage = FIELD(s, STAGE(t)), behind = 0;
        UNROLLED for (int n = 0; n < NODES; n++)
            behind |= (u64)((s & UP(n)) != 0) & (u64)(FIELD(s, LEARNED(n, t)) != stage);
        out[k] = s + (1ULL << STAGE(t)), k += (stage < LAST) & ((s & up) != 0) & !behind;
        UNROLLED for (int n = 0; n < NODES; n++) {
            u64 old = FIELD(s, LEARNED(n, t));
            out[k] = s ^ (old ^ stage) << LEARNED(n, t);
            k += (u64)((s & UP(n)) != 0) & (u64)(old != stage);
        }
    }
    UNROLLED for (int n = 0; n < NODES; n++) {
        u64 is_up = (s & UP(n)) != 0;
        out[k] = s & ~(UP(n) | STAGES << LEARNED(n, 0)), k += is_up;
        out[k] = (s & ~(STAGES << LEARNED(n, 0))) | UP(n) | (s & STAGES) << LEARNED(n, 0);
        k += !is_up;
    }
    return k;
}

INLINE int holds(const u64 s) {
    u64 wrong = 0;
    UNROLLED for (int n = 0; n < NODES; n++)
        UNROLLED for (int t = 0; t < TABLETS; t++)
            wrong |= (u64)((s & UP(n)) != 0) &
                     (u64)(FIELD(s, STAGE(t)) > FIELD(s, LEARNED(n, t)) + 1);
    return !wrong;
}
