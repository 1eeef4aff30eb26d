/* Two-phase commit, as in tests/models/two_phase_commit.py, with MANAGERS resource managers. */
enum { BITS = 3 + 4 * MANAGERS, MOST = 2 + 5 * MANAGERS };
enum { DECIDING = 1, COMMIT_SENT = 2, ABORT_SENT = 4 };
/* A manager has four bits: its decision, prepared (as heard), prepared sent. */
enum { WORKING, PREPARED, COMMITTED, ABORTED };
#define AT(m) (3 + 4 * (m))
#define DECISION(m, d) ((u64)(d) << AT(m))
#define HEARD(m) (4ULL << AT(m))
#define SENT(m) (8ULL << AT(m))

INLINE int initial(u64 i, u64 *s) {
    *s = DECIDING;
    return i == 0;
}

INLINE u64 expand(const u64 s, u64 *restrict out) {
    u64 k = 0, all = DECIDING;
    UNROLLED for (int m = 0; m < MANAGERS; m++) all |= HEARD(m);
    out[k] = (s & ~(u64)DECIDING) | COMMIT_SENT, k += (s & all) == all;
    out[k] = (s & ~(u64)DECIDING) | ABORT_SENT, k += s & DECIDING;
    UNROLLED for (int m = 0; m < MANAGERS; m++) {
        u64 working = (s & DECISION(m, 3)) == 0;
        u64 hear = DECIDING | SENT(m);
        out[k] = s | HEARD(m), k += (s & hear) == hear;
        out[k] = s | DECISION(m, PREPARED) | SENT(m), k += working;
        out[k] = s | DECISION(m, ABORTED), k += working;
        out[k] = (s & ~DECISION(m, 3)) | DECISION(m, COMMITTED), k += (s & COMMIT_SENT) != 0;
        out[k] = s | DECISION(m, ABORTED), k += (s & ABORT_SENT) != 0;
    }
    return k;
}

INLINE int holds(const u64 s) {
    u64 wrong = 0;
    UNROLLED for (int m = 0; m < MANAGERS; m++)
        UNROLLED for (int other = 0; other < MANAGERS; other++)
            wrong |= (u64)((s & DECISION(m, 3)) == DECISION(m, COMMITTED)) &
                     (u64)((s & DECISION(other, 3)) == DECISION(other, ABORTED));
    return !wrong;
}
