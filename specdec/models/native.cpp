// The layers of a small Llama on a CPU, in one call: rows of states in, rows of states out.
//
// Every number of a product is one sum over the inputs, from the first to the last, and every look at keys goes from
// the first to the last: a row that is checked among others has, to the bit, the logits of plain decoding. With codes as
// weights every processor has the same bits, a browser's WebAssembly, too: nothing else depends on its registers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#ifdef __wasm__  // in a browser
#include <wasm_simd128.h>
#ifndef __wasm_atomics__
#define thread_local static
#endif
#else
#include <immintrin.h>
#include <omp.h>
#endif

namespace {

#if defined __AVX512F__
constexpr int LANES = 16;  // numbers in a register, of 32
#elif defined __wasm__
constexpr int LANES = 4;  // of 16
#else
constexpr int LANES = 8;  // of 16
#endif
constexpr bool LARGE = LANES == 16, SMALL = LANES == 4;
#if defined __wasm_relaxed_simd__
constexpr bool BYTES = true;  // are multiplied without room for halfway sums
#else
constexpr bool BYTES = LARGE;
#endif
constexpr int BLOCK = 32, REGISTERS = BLOCK / LANES;  // outputs whose weights lie side by side
constexpr int GROUP = 32;  // inputs whose codes share a scale
constexpr int TOGETHER = 3;  // queries of a head that look at its keys at once
#define INLINE inline __attribute__((always_inline))  // sums then stay in registers
#define NOINLINE __attribute__((noinline))  // V8 keeps registers in small functions alone
constexpr int AHEAD = 32, LINE = 64;  // inputs whose weights are fetched in advance; bytes of a fetch

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef int16_t Shorts __attribute__((vector_size(4 * LANES)));
typedef uint16_t Naturals __attribute__((vector_size(4 * LANES)));

// y = after * (weights (before * x)). Weights are numbers, [outputs / BLOCK, inputs, BLOCK], or codes in groups of 32
// inputs: weight = scale * (code - zero) + minimum. Codes of 8 bits lie as [outputs / BLOCK, inputs / 4, BLOCK, 4], so
// that a register holds four inputs of its outputs; of 4 bits, the next four inputs are in the upper halves.
struct Matrix {
    const void* weights;
    const float *before, *after;  // of every input, of every output; null: 1
    const void *scales, *minima;  // [outputs / BLOCK, inputs / GROUP, BLOCK], of codes; minima may be null
    int64_t outputs, inputs;
    int32_t bits;  // of a weight: 32 float32, 16 bfloat16; 8 and 4 are codes
    int32_t scale_bits;  // of a scale or minimum: 32 float32, 16 float16
    int32_t zero;
};

struct Layer {
    Matrix qkv, out, gate_up, down;
    const float* qkv_bias;  // or null
};

Vec all(float value) { return value - Vec{}; }  // adding 0 would take an instruction: it changes -0
Ints all(int32_t value) { return Ints{} + value; }

Vec load(const float* from) {
    Vec v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

Ints load_codes(const uint8_t* from) {
    Ints v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Number, class Register>
void store(Number* to, Register v) { std::memcpy(to, &v, sizeof v); }

// bfloat16 is the upper half of a float32.
#ifdef __AVX512F__
Vec multiply_add(Vec a, Vec b, Vec c) { return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
Vec load(const uint16_t* from) {
    return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from)), 16);
}
Vec load_half(const uint16_t* from) { return (Vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from)); }
Ints add_pairs(Shorts a, Shorts b) { return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
#elif defined __wasm__
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));
Ints widened(const uint16_t* from) {
    Halves v;
    std::memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, Ints);
}
Vec multiply_add(Vec a, Vec b, Vec c) { return a * b + c; }
Vec load(const uint16_t* from) { return (Vec)(widened(from) << 16); }
Vec load_half(const uint16_t* from) {  // the exponent counts from 15 there, from 127 here
    Ints bits = widened(from);
    return (Vec)((Ints)((Vec)((bits & 0x7fff) << 13) * 0x1p112f) | (bits & 0x8000) << 16);
}
Ints add_pairs(Shorts a, Shorts b) { return (Ints)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b); }
#else
Vec multiply_add(Vec a, Vec b, Vec c) { return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
Vec load(const uint16_t* from) {
    return (Vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)from)), 16);
}
Vec load_half(const uint16_t* from) { return (Vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from)); }
Ints add_pairs(Shorts a, Shorts b) { return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
#endif

// Codes of inputs, -127 to 127, as they are multiplied. Where bytes cannot be, four inputs lie as two pairs: the first
// and the third, the second and the fourth.
#if defined __AVX512VNNI__ || (defined __AVXVNNI__ && !defined __AVX512F__) || defined __wasm_relaxed_simd__
typedef int8_t Code;
void store_codes(Code* to, Ints codes) {
    typedef Code Register __attribute__((vector_size(LANES)));
    store(to, __builtin_convertvector(codes, Register));
}
#else
typedef int16_t Code;
void store_codes(Code* to, Ints codes) {
    for (int i = 0; i < LANES; i++) to[i / 4 * 4 + i % 2 * 2 + i / 2 % 2] = codes[i];
}
#endif

Ints pair_of(const Code* codes) {  // 32 bits of them, in all lanes
    int32_t bits;
    std::memcpy(&bits, codes, sizeof bits);
    return all(bits);
}

// Adds four products to every sum: codes of weights, 0 to 255 (relaxed: 127), by codes of inputs. Exact in every form.
Ints add_products(Ints sums, Ints weights, const Code* inputs) {
#if defined __AVX512VNNI__
    return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)pair_of(inputs));
#elif defined __AVXVNNI__ && !defined __AVX512F__
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)weights, (__m256i)pair_of(inputs));
#elif defined __wasm_relaxed_simd__
    typedef int8_t Bytes __attribute__((vector_size(16)));
    return __builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4((Bytes)pair_of(inputs), (Bytes)weights, sums);
#else
    Shorts even = (Shorts)weights & 255, odd = (Shorts)((Naturals)weights >> 8);
    return sums + add_pairs(even, (Shorts)pair_of(inputs)) + add_pairs(odd, (Shorts)pair_of(inputs + 2));
#endif
}

// Long sums are sixteen beside each other, however many registers those take.
constexpr int SUMS = 16, PARTS = SUMS / LANES;

float sum(const Vec (&parts)[PARTS]) {
    typedef float Quarter __attribute__((vector_size(16)));
    Quarter q[4];
    std::memcpy(q, parts, sizeof q);
    Quarter all = (q[0] + q[2]) + (q[1] + q[3]);
    return (all[0] + all[2]) + (all[1] + all[3]);
}

// e^x for x <= 88: 2^n by the exponent's bits, the rest by the polynomial of Cephes' expf. Below -87, zero.
Vec exponential(Vec x) {
    Vec scaled = x * 1.44269504f;
    Ints n = __builtin_convertvector(scaled + (scaled < 0 ? all(-.5f) : all(.5f)), Ints);
    Vec whole = __builtin_convertvector(n, Vec), p = all(1.9875691500e-4f);
    Vec r = whole * 2.12194440e-4f + (whole * -.693359375f + x);
    for (float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        p = p * r + next;
    p = p * r * r + r + 1.f;
    Ints bits = (n + 127) << 23;
    Vec power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -87.f ? Vec{} : p * power;
}

Vec silu(Vec x) {
    x = x < -80.f ? all(-80.f) : x;  // below, nothing is left of it
    return x / (exponential(x > 80.f ? all(-80.f) : -x) + 1.f);
}

// Threads: OpenMP's, or a browser's workers, each with an instance of this module over one memory.
#if defined __wasm_atomics__
constexpr int MOST = 16, PATIENCE = 20000;  // threads; looks before one sleeps

struct Signal {  // a number that grows, and who sleeps until it does
    int32_t number, asleep;
    int32_t now() { return __atomic_load_n(&number, __ATOMIC_SEQ_CST); }
    void raise() {
        __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST)) __builtin_wasm_memory_atomic_notify(&number, MOST);
    }
    void wait(int32_t known) {
        for (int i = 0; i < PATIENCE; i++)
            if (now() != known) return;
        __atomic_add_fetch(&asleep, 1, __ATOMIC_SEQ_CST);
        while (now() == known) __builtin_wasm_memory_atomic_wait32(&number, known, -1);
        __atomic_sub_fetch(&asleep, 1, __ATOMIC_SEQ_CST);
    }
};

struct Team {
    Signal job, turn;
    int32_t threads, arrived;
    void (*run)(const void*);
    const void* work;
} team = {{}, {}, 1, 0, nullptr, nullptr};
thread_local int32_t own_number = 0;

int omp_get_num_threads() { return team.threads; }
int omp_get_thread_num() { return own_number; }

void barrier() {
    if (team.threads == 1) return;
    int32_t turn = team.turn.now();
    if (__atomic_add_fetch(&team.arrived, 1, __ATOMIC_SEQ_CST) < team.threads) return team.turn.wait(turn);
    __atomic_store_n(&team.arrived, 0, __ATOMIC_SEQ_CST);
    team.turn.raise();
}

// `work` by all threads; it ends when all have ended.
template <class Work>
void together(int threads, const Work& work) {
    team.threads = threads;
    team.work = &work;
    team.run = [](const void* it) { (*(const Work*)it)(); };
    if (threads > 1) team.job.raise();
    work();
    barrier();
    team.threads = 1;
}
#elif defined __wasm__
int omp_get_num_threads() { return 1; }
int omp_get_thread_num() { return 0; }
void barrier() {}
template <class Work>
void together(int, const Work& work) { work(); }
#else
void barrier() {
#pragma omp barrier
}
template <class Work>
void together(int threads, const Work& work) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    work();
}
#endif

template <class T>
struct Room {
    T* at;
    int64_t size;
    T* of(int64_t wanted) {  // what was too small is not given back
        if (size < wanted) {
            at = (T*)std::malloc(2 * wanted * sizeof(T));
            if (!at) __builtin_trap();
            size = 2 * wanted;
        }
        return at;
    }
};

#if defined __wasm_atomics__
template <class T>
Room<T> rooms[MOST][6];

template <class T>
T* scratch(int which, int64_t size) { return rooms<T>[own_number][which].of(size); }

// The rooms of all threads, before they begin: the first alone may let the memory grow, and others see that late.
template <class T>
void provide(int threads, int which, int64_t size) {
    for (int i = 0; i < threads; i++) rooms<T>[i][which].of(size);
}
#else
template <class T>
T* scratch(int which, int64_t size) {  // kept from call to call
    thread_local Room<T> rooms[6];
    return rooms[which].of(size);
}
template <class T>
void provide(int, int, int64_t) {}
#endif

// What a matrix multiplies: rows of numbers or, for codes, rows rounded to 8 bits in groups, each row by itself.
struct Inputs {
    const float* x;  // `before` multiplied in
    const Code* codes;  // [rows, inputs]
    const float *scales, *totals;  // [rows, groups]: of a step; of all numbers in the group
    const int32_t* starts;  // [rows, groups]: what sums of products begin with, so that codes count from the zero
};

// The largest of 32 numbers takes 127 steps. What is no number makes the scale none.
void round_group(const float* x, const float* before, const Matrix& m, Code* codes, float* scale, float* total,
                 int32_t* start) {
    Vec numbers[GROUP / LANES], most = {}, none = {};
    for (int i = 0; i < GROUP / LANES; i++) {
        Vec v = load(x + i * LANES);
        if (before) v *= load(before + i * LANES);
        Vec size = v < 0 ? -v : v;
        most = size > most ? size : most;
        none += v - v;
        numbers[i] = v;
    }
    float highest = most[0];
    for (int i = 1; i < LANES; i++) highest = std::max(highest, most[i]);
    const float nearest = 12582912.f;  // 1.5 * 2^23: adding it leaves no place for a fraction
    float steps = highest > 1e-30f ? 127.f / highest : 0.f;
    Ints sums = {};
    for (int i = 0; i < GROUP / LANES; i++) {
        Ints n = __builtin_convertvector(numbers[i] * steps + nearest - nearest, Ints);
        store_codes(codes + i * LANES, n);
        sums += n;
    }
    int32_t sum_of_codes = 0;
    float no_number = 0;
    for (int i = 0; i < LANES; i++) {
        sum_of_codes += sums[i];
        no_number += none[i];
    }
    *scale = highest / 127.f + no_number;
    *total = *scale * sum_of_codes;
    *start = -m.zero * sum_of_codes;
}

void provide_codes(int threads, int64_t numbers) {  // for `prepared`, of so many
    provide<Code>(threads, 0, numbers);
    provide<int32_t>(threads, 0, numbers / GROUP);
    provide<float>(threads, 5, 2 * numbers / GROUP);
}

Inputs prepared(const float* x, int64_t rows, const Matrix& m) {
    if (m.bits >= 16) {
        if (!m.before) return {x};
        float* y = scratch<float>(5, rows * m.inputs);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < m.inputs; i++) y[r * m.inputs + i] = x[r * m.inputs + i] * m.before[i];
        return {y};
    }
    const int64_t groups = rows * m.inputs / GROUP;
    Code* codes = scratch<Code>(0, rows * m.inputs);
    int32_t* starts = scratch<int32_t>(0, groups);
    float* scales = scratch<float>(5, 2 * groups);
    for (int64_t g = 0; g < groups; g++) {
        const float* before = m.before ? m.before + g * GROUP % m.inputs : nullptr;
        round_group(x + g * GROUP, before, m, codes + g * GROUP, scales + g, scales + groups + g, starts + g);
    }
    return {x, codes, scales, scales + groups, starts};
}

// How a kind of weights is multiplied: the rows of a tile, and the registers of outputs beside each other in one.
template <int BITS>
struct Kind {
    static constexpr bool codes = BITS < 16;
    static constexpr int rows = codes ? (LARGE ? 8 : 4) : 6;
    static constexpr int across(int rows) {
        if (codes) return BYTES ? (rows <= 3 ? 4 : 2) : rows == 1 ? 4 : rows == 2 || SMALL ? 2 : 1;
        return REGISTERS * (LARGE ? (rows == 1 ? 4 : 2) : (rows == 1 ? 2 : 1));
    }
};

// Adds the products of inputs [begin, end) to the sums, which stay in registers meanwhile.
template <int ROWS, int ACROSS, class Number>
INLINE void multiply_part(const float* x, const Number* weights, int64_t inputs, int64_t begin, int64_t end,
                          Vec (*sums)[ACROSS]) {
    Vec local[ROWS][ACROSS];
    std::memcpy(local, sums, sizeof local);
    for (int64_t i = begin; i < end; i++)
        for (int o = 0; o < ACROSS; o++) {
            const Number* from = weights + (o / REGISTERS * inputs + i) * BLOCK + o % REGISTERS * LANES;
            if (o * LANES * sizeof(Number) % LINE == 0) __builtin_prefetch(from + AHEAD * BLOCK);
            Vec some = load(from);
            for (int r = 0; r < ROWS; r++) local[r][o] = multiply_add(all(x[r * inputs + i]), some, local[r][o]);
        }
    std::memcpy(sums, local, sizeof local);
}

// The sums of ROWS rows and ACROSS registers of outputs, from the first input to the last. Where registers hold fewer
// rows, these take turns at each part of the inputs: memory sends the next part meanwhile.
template <int BITS, int ROWS, int ACROSS>
NOINLINE void multiply(const Inputs& in, const Matrix& m, int64_t output, int64_t row, Vec (&sums)[ROWS][ACROSS]) {
    typedef std::conditional_t<BITS == 32, float, uint16_t> Number;
    constexpr int AT_ONCE = LARGE || ROWS < 3 ? ROWS : 3, REST = ROWS % AT_ONCE;
    const float* x = in.x + row * m.inputs;
    const Number* weights = (const Number*)m.weights + output / BLOCK * BLOCK * m.inputs + output % BLOCK;
    const int64_t part = ROWS == AT_ONCE ? m.inputs : AHEAD;
    for (int64_t i = 0; i < m.inputs; i += part) {
        const int64_t end = std::min(i + part, m.inputs);
        for (int r = 0; r + AT_ONCE <= ROWS; r += AT_ONCE)
            multiply_part<AT_ONCE>(x + r * m.inputs, weights, m.inputs, i, end, sums + r);
        if constexpr (REST)
            multiply_part<REST>(x + (ROWS - REST) * m.inputs, weights, m.inputs, i, end, sums + ROWS - REST);
    }
}

// The same of codes: in a group products of whole numbers are added, which is exact.
template <int BITS, int ROWS, int ACROSS>
INLINE void multiply_codes(const Inputs& in, const Matrix& m, int64_t output, int64_t row, Vec (&sums)[ROWS][ACROSS]) {
    constexpr int FOURS = 32 / BITS, STEPS = GROUP / FOURS;  // inputs in 32 bits of a register; loads of a group
    const int64_t groups = m.inputs / GROUP, first = row * groups;
    auto of_output = [&](int o, int64_t g) { return ((output / BLOCK + o / REGISTERS) * groups + g); };
    for (int64_t g = 0; g < groups; g++) {
        Ints whole[ROWS][ACROSS];
        for (int r = 0; r < ROWS; r++)
            for (int o = 0; o < ACROSS; o++) whole[r][o] = all(in.starts[first + r * groups + g]);
        for (int s = 0; s < STEPS; s++)
            for (int o = 0; o < ACROSS; o++) {
                int64_t at = output % BLOCK + o % REGISTERS * LANES;
                const uint8_t* from = (const uint8_t*)m.weights + (of_output(o, g) * STEPS + s) * 4 * BLOCK + 4 * at;
                __builtin_prefetch(from + 2 * STEPS * 4 * BLOCK);
                Ints some = load_codes(from);
                for (int part = 0; part < 8 / BITS; part++) {
                    Ints four = BITS == 8 ? some : (part ? some >> 4 : some) & 0x0f0f0f0f;
                    const Code* inputs = in.codes + (first + g) * GROUP + s * FOURS + 4 * part;
                    for (int r = 0; r < ROWS; r++)
                        whole[r][o] = add_products(whole[r][o], four, inputs + r * m.inputs);
                }
            }
        for (int o = 0; o < ACROSS; o++) {
            int64_t at = of_output(o, g) * BLOCK + output % BLOCK + o % REGISTERS * LANES;
            auto number = [&](const void* of) {
                return m.scale_bits == 16 ? load_half((const uint16_t*)of + at) : load((const float*)of + at);
            };
            Vec scale = number(m.scales);
            for (int r = 0; r < ROWS; r++)
                sums[r][o] += __builtin_convertvector(whole[r][o], Vec) * (scale * in.scales[first + r * groups + g]);
            if (!m.minima) continue;
            Vec minimum = number(m.minima);
            for (int r = 0; r < ROWS; r++) sums[r][o] += minimum * in.totals[first + r * groups + g];
        }
    }
}

template <int BITS, int ROWS, int ACROSS, class Put>
NOINLINE void tile(const Inputs& in, const Matrix& m, int64_t output, int64_t row, Put put) {
    Vec sums[ROWS][ACROSS] = {};
    if constexpr (Kind<BITS>::codes) multiply_codes<BITS>(in, m, output, row, sums);
    else multiply<BITS>(in, m, output, row, sums);
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < ACROSS; o++) {
            int64_t at = output + o * LANES;
            put(row + r, at, m.after ? sums[r][o] * load(m.after + at) : sums[r][o]);
        }
}

// `rows` rows from `row` on, of which a tile holds ROWS at most.
template <int BITS, int ROWS, class Put>
void across(const Inputs& in, const Matrix& m, int64_t from, int64_t to, int64_t row, int64_t rows, Put put) {
    constexpr int ACROSS = Kind<BITS>::across(ROWS);
    if (rows >= ROWS) {
        int64_t output = from;
        for (; output + ACROSS * LANES <= to; output += ACROSS * LANES)
            tile<BITS, ROWS, ACROSS>(in, m, output, row, put);
        if constexpr (BLOCK % (ACROSS * LANES))
            for (; output < to; output += BLOCK) tile<BITS, ROWS, REGISTERS>(in, m, output, row, put);
        if (rows > ROWS) across<BITS, ROWS>(in, m, from, to, row + ROWS, rows - ROWS, put);
    } else if constexpr (ROWS > 1) {
        across<BITS, ROWS - 1>(in, m, from, to, row, rows, put);
    }
}

template <int BITS, class Put>
void product_of(const Inputs& in, int64_t rows, const Matrix& m, int64_t from, int64_t to, Put put) {
    constexpr int MOST = Kind<BITS>::rows;
    int64_t step = rows <= MOST ? to - from : 2 * BLOCK;  // weights stay near while many rows are read
    for (; from < to; from += step) across<BITS, MOST>(in, m, from, std::min(from + step, to), 0, rows, put);
}

// Outputs [from, to) for all rows; `put(row, output, values)` takes a register of them.
template <class Put>
void product(const Inputs& in, int64_t rows, const Matrix& m, int64_t from, int64_t to, Put put) {
    if constexpr (!SMALL) {  // a browser fetches codes alone
        if (m.bits == 32) product_of<32>(in, rows, m, from, to, put);
        if (m.bits == 16) product_of<16>(in, rows, m, from, to, put);
    }
    if (m.bits == 8) product_of<8>(in, rows, m, from, to, put);
    if (m.bits == 4) product_of<4>(in, rows, m, from, to, put);
}

void normalise(const float* x, int64_t rows, int64_t width, float floor, float* y) {
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        Vec squares[PARTS] = {};
        for (int64_t i = 0; i < width; i += LANES) squares[i / LANES % PARTS] += load(x + i) * load(x + i);
        float scale = 1.f / std::sqrt(sum(squares) + floor * floor);
        for (int64_t i = 0; i < width; i += LANES) store(y + i, load(x + i) * scale);
    }
}

// The means of values [end, size] by the weights of each row.
template <int ROWS, int WIDE>
void mix(const float* values, int64_t end, int64_t size, const float* weights, int64_t stride, const float* shares,
         float* y, int64_t y_stride) {
    Vec means[ROWS][WIDE] = {};
    for (int64_t p = 0; p < end; p++)
        for (int i = 0; i < WIDE; i++) {
            Vec value = load(values + p * size + i * LANES);
            for (int r = 0; r < ROWS; r++) means[r][i] += value * weights[r * stride + p];
        }
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDE; i++) store(y + r * y_stride + i * LANES, means[r][i] * shares[r]);
}

// ROWS queries of a head look at its keys and values [.., size]. The first sees `end` of them, each next one `more`
// more. In a tree `on_path` [ROWS, end - start] says which keys from `start` on a row sees; else it is null. The scores of
// a path then stand together, as a chain's do, while they are added: the sums have the same bits.
template <int ROWS>
void attend(const float* q, int64_t stride, const float* keys, const float* values, int64_t end, int64_t more,
            int64_t size, const uint8_t* on_path, int64_t start, float* scores, float* y) {
    const int64_t last = end + (ROWS - 1) * more, whole = (last + SUMS - 1) / SUMS * SUMS;
    for (int64_t p = 0; p < last; p++) {
        Vec totals[ROWS][PARTS] = {};
        for (int64_t i = 0; i < size; i += SUMS)
            for (int part = 0; part < PARTS; part++) {
                Vec key = load(keys + p * size + i + part * LANES);
                for (int r = 0; r < ROWS; r++) totals[r][part] += load(q + r * stride + i + part * LANES) * key;
            }
        for (int r = 0; r < ROWS; r++) scores[r * whole + p] = sum(totals[r]);
    }
    float shares[ROWS];
    for (int r = 0; r < ROWS; r++) {
        float* own = scores + r * whole;
        const uint8_t* path = on_path + r * (end - start);
        int64_t visible = on_path ? start : end + r * more;
        for (int64_t p = start; on_path && p < end; p++)
            if (path[p - start]) own[visible++] = own[p];
        std::fill(own + visible, own + whole, -INFINITY);
        Vec most = all(-INFINITY), total[PARTS] = {};
        for (int64_t p = 0; p < whole; p += LANES) most = load(own + p) > most ? load(own + p) : most;
        float highest = most[0];
        for (int i = 1; i < LANES; i++) highest = std::max(highest, most[i]);
        for (int64_t p = 0; p < whole; p += LANES) {
            Vec e = exponential(load(own + p) - highest);
            store(own + p, e);
            total[p / LANES % PARTS] += e;
        }
        shares[r] = 1.f / sum(total);
        for (int64_t p = end; on_path && p-- > start;) own[p] = path[p - start] ? own[--visible] : 0.f;
    }
    int64_t i = 0;
    for (; i + 4 * LANES <= size; i += 4 * LANES)
        mix<ROWS, 4>(values + i, last, size, scores, whole, shares, y + i, stride);
    for (; i < size; i += LANES) mix<ROWS, 1>(values + i, last, size, scores, whole, shares, y + i, stride);
}

struct Share {  // this thread's of `count` things, in whole steps
    int64_t from, to;
    Share(int64_t count, int64_t step) {
        int64_t threads = omp_get_num_threads(), mine = omp_get_thread_num(), steps = (count + step - 1) / step;
        from = std::min(count, steps * mine / threads * step);
        to = std::min(count, steps * (mine + 1) / threads * step);
    }
};

}  // namespace

extern "C" {

// Every row of x [rows, width], divided by its length: y, which may be x.
void specdec_normalise(const float* x, int64_t rows, int64_t width, float floor, float* y) {
    normalise(x, rows, width, floor, y);
}

// x [rows, inputs] times the matrix: y [rows, outputs].
void specdec_product(const Matrix* m, const float* x, int64_t rows, float* y, int threads) {
    provide_codes(threads, rows * m->inputs);
    together(threads, [=] {
        Share share(m->outputs, BLOCK);
        product(prepared(x, rows, *m), rows, *m, share.from, share.to,
                [&](int64_t r, int64_t o, Vec values) { store(y + r * m->outputs + o, values); });
    });
}

// x [rows, width] at `start` through `count` layers, in place. `cache` is that of the first layer: keys of all heads,
// then values, each [capacity, size]; `angles` [rows, size / 2] are complex. `on_path` [rows, rows] is 1 where the path of
// a row holds another; where it is null a row sees what is before it or, if not `causal`, everything. `read` is what the
// attention of the first layer reads, where that is not the normed x.
void specdec_layers(const Layer* layers, int64_t count, float* x, int64_t rows, int64_t width, const float* read,
                    float* cache, int64_t layer_stride, int64_t capacity, int64_t start, int64_t heads,
                    int64_t kv_heads, int64_t size, const float* angles, const uint8_t* on_path, int causal, float floor,
                    int threads) {
    const int64_t stored = heads * size, turned = (heads + kv_heads) * size, inner = layers->down.inputs;
    const int64_t groups = (rows + TOGETHER - 1) / TOGETHER, more = causal && !on_path;
    float* queries = scratch<float>(0, rows * stored);
    float* seen = scratch<float>(1, rows * stored);
    float* gated = scratch<float>(2, rows * inner);
    provide_codes(threads, rows * std::max({width, stored, inner}));
    provide<float>(threads, 3, rows * width);
    provide<float>(threads, 4, TOGETHER * (start + rows + SUMS));
    together(threads, [=] {
        float* normed = scratch<float>(3, rows * width);
        float* scores = scratch<float>(4, TOGETHER * (start + rows + SUMS));
        for (int64_t l = 0; l < count; l++) {
            const Layer& layer = layers[l];
            float* entries = cache + l * layer_stride;
            const float* from = l || !read ? normed : read;
            if (from == normed) normalise(x, rows, width, floor, normed);

            Share mine(layer.qkv.outputs, BLOCK);
            auto place = [&](int64_t r, int64_t o) {  // queries, keys and values, where they are read
                if (o < stored) return queries + r * stored + o;
                int64_t entry = o - stored;
                return entries + (entry / size * capacity + start + r) * size + entry % size;
            };
            auto put = [&](int64_t r, int64_t o, Vec values) {
                store(place(r, o), layer.qkv_bias ? values + load(layer.qkv_bias + o) : values);
            };
            product(prepared(from, rows, layer.qkv), rows, layer.qkv, mine.from, mine.to, put);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t o = mine.from; o < std::min(mine.to, turned); o += 2) {
                    float* pair = place(r, o);
                    const float* angle = angles + r * size + o % size;
                    float real = pair[0] * angle[0] - pair[1] * angle[1];
                    pair[1] = pair[0] * angle[1] + pair[1] * angle[0];
                    pair[0] = real;
                }
            barrier();
            Share looks(heads * groups, 1);
            for (int64_t look = looks.from; look < looks.to; look++) {
                int64_t head = look / groups, r = look % groups * TOGETHER, kv = head * kv_heads / heads;
                auto at = [&](auto rows_here) {
                    attend<rows_here>(queries + r * stored + head * size, stored, entries + kv * capacity * size,
                                      entries + (kv_heads + kv) * capacity * size, start + (more ? r + 1 : rows), more,
                                      size, on_path ? on_path + r * rows : nullptr, start, scores,
                                      seen + r * stored + head * size);
                };
                switch (std::min<int64_t>(rows - r, TOGETHER)) {
                    case 1: at(std::integral_constant<int, 1>{}); break;
                    case 2: at(std::integral_constant<int, 2>{}); break;
                    case 3: at(std::integral_constant<int, 3>{}); break;
                }
            }
            barrier();
            Share part(width, BLOCK), units(inner, BLOCK);
            auto add = [&](int64_t r, int64_t o, Vec values) {
                float* at = x + r * width + o;
                store(at, load(at) + values);
            };
            auto gate = [&](int64_t r, int64_t o, Vec values) { store(gated + r * inner + o, silu(values)); };
            auto weigh = [&](int64_t r, int64_t o, Vec values) {
                float* at = gated + r * inner + o - inner;
                store(at, load(at) * values);
            };
            product(prepared(seen, rows, layer.out), rows, layer.out, part.from, part.to, add);
            barrier();
            normalise(x, rows, width, floor, normed);
            Inputs read_by_units = prepared(normed, rows, layer.gate_up);
            product(read_by_units, rows, layer.gate_up, units.from, units.to, gate);
            product(read_by_units, rows, layer.gate_up, inner + units.from, inner + units.to, weigh);
            barrier();
            product(prepared(gated, rows, layer.down), rows, layer.down, part.from, part.to, add);
            barrier();
        }
    });
}

#if defined __wasm_atomics__
// A thread of a browser's: it does its share of every call, for as long as its worker lives.
void specdec_help(int32_t number) {
    own_number = number;
    for (int32_t job = 0;; job++) {
        team.job.wait(job);
        team.run(team.work);
        barrier();
    }
}
#endif
}
