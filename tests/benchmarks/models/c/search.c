/* Breadth-first search over bit-packed states: the algorithm of the native engine, by hand, in C.
 *
 * A model is a header, named by -DMODEL, that defines
 *   BITS            how many bits a state has, at most 64
 *   MOST            how many successors a state has, at most
 *   initial(i, &s)  1 and the i-th initial state, 0 when there are no more
 *   expand(s, out)  the successors of s into out; how many
 *   holds(s)        whether the invariants hold in s
 *
 * Exact storage without the states: an invertible hash of a state modulo 2^BITS; its top bits are
 * the bucket, which is one cache line; what is left, and how many buckets further on it was put,
 * stand in a slot. A slot has 32 bits where that fits, else 64. 0 is an empty slot.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint64_t u64;
typedef uint32_t u32;
#define INLINE static inline __attribute__((always_inline))
#define RARELY(x) __builtin_expect(!!(x), 0)
#define UNROLLED _Pragma("GCC unroll 128")

#include MODEL

_Static_assert(BITS <= 64, "a state has one word");

enum { BLOCK = 8, LINE = 64, SPARE = 4 /* bits of displacement, at least */ };
#define ALL (BITS == 64 ? ~0ULL : (1ULL << (BITS % 64)) - 1)
#define HALF ((BITS + 1) / 2)

/* ------------------------------------------------------------------------------------ memory */

static const size_t HUGE_PAGE = 2 << 20;

static void *reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(3);
    }
    if (bytes >= HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

/* ------------------------------------------------------------------------------------- table */

typedef struct {
    void *slots;
    int lg;     /* 2^lg buckets */
    int narrow; /* 32-bit slots, 16 a bucket; else 64-bit ones, 8 a bucket */
    u64 used, limit;
} Table;

INLINE u64 hash_of(u64 x) {
    x ^= x >> HALF;
    x = x * 0xD6E8FEB86659FD93ULL & ALL;
    x ^= x >> HALF;
    x = x * 0x9E3779B97F4A7C15ULL & ALL;
    return x ^ x >> HALF;
}

INLINE int slots_a_bucket(int narrow) { return narrow ? 16 : 8; }

static int may_be_narrow(int lg) { return BITS - lg + SPARE <= 32; }

static Table new_table(int lg) {
    Table t = {.lg = lg, .narrow = may_be_narrow(lg), .used = 0};
    t.slots = reserve((size_t)LINE << lg);
    t.limit = (u64)(0.85 * (double)((u64)slots_a_bucket(t.narrow) << lg));
    return t;
}

/* Which of the slots of a bucket equal the key: one bit a slot. */
INLINE u32 equal_narrow(const u32 *b, u32 key) {
#if defined __AVX512F__ && !defined NO_AVX512
    return _mm512_cmpeq_epi32_mask(_mm512_load_si512(b), _mm512_set1_epi32((int)key));
#elif defined __AVX2__
    __m256i k = _mm256_set1_epi32((int)key);
    __m256i low = _mm256_cmpeq_epi32(_mm256_load_si256((const __m256i *)b), k);
    __m256i high = _mm256_cmpeq_epi32(_mm256_load_si256((const __m256i *)b + 1), k);
    return (u32)_mm256_movemask_ps(_mm256_castsi256_ps(low)) |
           (u32)_mm256_movemask_ps(_mm256_castsi256_ps(high)) << 8;
#else
    u32 found = 0;
    UNROLLED for (int i = 0; i < 16; i++) found |= (u32)(b[i] == key) << i;
    return found;
#endif
}

INLINE u32 equal_wide(const u64 *b, u64 key) {
#if defined __AVX512F__ && !defined NO_AVX512
    return _mm512_cmpeq_epi64_mask(_mm512_load_si512(b), _mm512_set1_epi64((long long)key));
#elif defined __AVX2__
    __m256i k = _mm256_set1_epi64x((long long)key);
    __m256i low = _mm256_cmpeq_epi64(_mm256_load_si256((const __m256i *)b), k);
    __m256i high = _mm256_cmpeq_epi64(_mm256_load_si256((const __m256i *)b + 1), k);
    return (u32)_mm256_movemask_pd(_mm256_castsi256_pd(low)) |
           (u32)_mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
#else
    u32 found = 0;
    UNROLLED for (int i = 0; i < 8; i++) found |= (u32)(b[i] == key) << i;
    return found;
#endif
}

/* 1: was not there and now is; 0: was there; -1: too far from its bucket to be told. */
INLINE int insert(void *slots, int lg, int narrow, u64 h) {
    int rest = BITS - lg, spare = (narrow ? 32 : 64) - rest;
    if (spare > 32) spare = 32;
    u64 home = rest == 64 ? 0 : h >> rest, mask = (1ULL << lg) - 1;
    u64 key = ((h & ((rest == 64 ? 0 : 1ULL << rest) - 1)) << spare) + 1;
    u64 furthest = (1ULL << spare) - 2;
    for (u64 d = 0; d <= furthest; d++, key++) {
        u64 bucket = (home + d) & mask;
        u32 seen, empty;
        if (narrow) {
            u32 *b = (u32 *)slots + bucket * 16;
            seen = equal_narrow(b, (u32)key), empty = equal_narrow(b, 0);
            if (seen) return 0;
            if (empty) return b[__builtin_ctz(empty)] = (u32)key, 1;
        } else {
            u64 *b = (u64 *)slots + bucket * 8;
            seen = equal_wide(b, key), empty = equal_wide(b, 0);
            if (seen) return 0;
            if (empty) return b[__builtin_ctz(empty)] = key, 1;
        }
    }
    return -1;
}

/* Moves every hash into a table of more buckets; the old table is given back as it is read.
 * Both are walked from front to back, so the two together take little more than the new one. */
static int refill(Table *to, Table *from) {
    int rest = BITS - from->lg, n = slots_a_bucket(from->narrow);
    int spare = (from->narrow ? 32 : 64) - rest;
    if (spare > 32) spare = 32;
    u64 buckets = 1ULL << from->lg;
    for (u64 i = 0; i < buckets; i++) {
        for (int j = 0; j < n; j++) {
            u64 key = from->narrow ? ((u32 *)from->slots)[i * 16 + (u64)j]
                                   : ((u64 *)from->slots)[i * 8 + (u64)j];
            if (!key) break;
            u64 d = (key - 1) & ((1ULL << spare) - 1);
            u64 h = ((i - d) & (buckets - 1)) << rest | (key - 1) >> spare;
            if (insert(to->slots, to->lg, to->narrow, h) != 1) return 0;
        }
        u64 done = (i + 1) * LINE;
        if (done % HUGE_PAGE == 0)
            madvise((char *)from->slots + done - HUGE_PAGE, HUGE_PAGE, MADV_DONTNEED);
    }
    to->used = from->used;
    munmap(from->slots, (size_t)LINE << from->lg);
    return 1;
}

static void grow(Table *table) {
    /* Where twice the buckets let the slots be half as wide, that alone quadruples the room. */
    int lg = table->lg + (table->narrow || !may_be_narrow(table->lg));
    Table bigger = new_table(lg);
    if (!refill(&bigger, table)) {
        fprintf(stderr, "a displacement does not fit its slot\n");
        exit(3);
    }
    *table = bigger;
}

/* ------------------------------------------------------------------------------------ search */

typedef struct {
    u64 *states, count, room;
} Level;

static void make_room(Level *level, u64 more) {
    if (RARELY(level->count + more > level->room)) {
        u64 room = level->room * 2;
        level->states = mremap(level->states, level->room * 8, room * 8, MREMAP_MAYMOVE);
        if (level->states == MAP_FAILED) exit(3);
        level->room = room;
    }
}

typedef struct {
    Table table;
    Level now, next;
    u64 states, transitions, depth;
    u64 bad, found_bad;
} Search;

/* Puts what is new among the k states of `out` into the next level. Specialised by slot width. */
INLINE void store(Search *s, const u64 *out, u64 k, u64 *hashes, int narrow) {
    Table *t = &s->table;
    int lg = t->lg, rest = BITS - lg;
    char *slots = t->slots;
    for (u64 j = 0; j < k; j++) {
        u64 h = hashes[j] = hash_of(out[j]);
        __builtin_prefetch(slots + (rest == 64 ? 0 : h >> rest) * LINE, 1, 3);
    }
    u64 *next = s->next.states, n = s->next.count, before = n;
    for (u64 j = 0; j < k; j++) {
        int r = insert(slots, lg, narrow, hashes[j]);
        if (RARELY(r < 0)) {
            s->table.used += n - before, before = n;
            do grow(t);
            while ((r = insert(t->slots, t->lg, t->narrow, hashes[j])) < 0);
            next[n] = out[j], n += (u64)r, s->table.used += (u64)r, before = n;
            for (j++; j < k; j++) { /* the rest of this block, slowly */
                r = insert(t->slots, t->lg, t->narrow, hashes[j]);
                next[n] = out[j], n += (u64)r;
            }
            break;
        }
        next[n] = out[j], n += (u64)r;
    }
    s->table.used += n - before;
    s->next.count = n;
}

static __attribute__((noinline)) void expand_level(Search *s) {
    static u64 out[BLOCK * MOST + MOST + 8], hashes[BLOCK * MOST + 8];
    const u64 *now = s->now.states;
    u64 end = s->now.count;
    for (u64 i = 0; i < end; i += BLOCK) {
        u64 n = end - i < BLOCK ? end - i : BLOCK, k = 0;
        make_room(&s->next, BLOCK * MOST + 1);
        for (u64 j = 0; j < n; j++) {
            u64 state = now[i + j];
            if (RARELY(!holds(state))) s->bad = state, s->found_bad = 1;
            k += expand(state, out + k);
        }
        s->transitions += k;
        if (RARELY(s->table.used + k > s->table.limit)) grow(&s->table);
        if (s->table.narrow) store(s, out, k, hashes, 1);
        else store(s, out, k, hashes, 0);
    }
}

static void begin(Search *s) {
    int lg = 10; /* 64 KiB; more buckets where that makes the slots narrow at once */
    while (lg < 14 && lg < BITS && !may_be_narrow(lg)) lg++;
    if (!may_be_narrow(lg)) lg = 10;
    if (lg > BITS) lg = BITS;
    s->table = new_table(lg);
    s->now = (Level){reserve(1 << 20), 0, 1 << 17};
    s->next = (Level){reserve(1 << 20), 0, 1 << 17};
    u64 state, hash;
    for (u64 i = 0; initial(i, &state); i++) {
        make_room(&s->next, 1);
        if (s->table.used + 1 > s->table.limit) grow(&s->table);
        store(s, &state, 1, &hash, s->table.narrow);
    }
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 +
           (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6;
}

int main(void) {
    static Search s;
    begin(&s);
    while (s.next.count) {
        Level done = s.now;
        s.now = s.next, s.next = done, s.next.count = 0;
        s.states += s.now.count, s.depth++;
        expand_level(&s);
    }
    printf("{\"states\": %llu, \"transitions\": %llu, \"levels\": %llu, \"holds\": %s, "
           "\"seconds\": %.3f, \"slot_bits\": %d, \"table_bytes\": %llu}\n",
           (unsigned long long)s.states, (unsigned long long)s.transitions,
           (unsigned long long)s.depth, s.found_bad ? "false" : "true", cpu_seconds(),
           s.table.narrow ? 32 : 64, (unsigned long long)LINE << s.table.lg);
    return s.found_bad;
}
