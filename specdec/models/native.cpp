// The layers of a small Llama on a CPU, in one call: rows of states in, rows of states out.
//
// Every number of a product is one sum over the inputs, from the first to the last, and every look at keys goes from
// the first to the last: a row that is checked among others has, to the bit, the logits of plain decoding.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <immintrin.h>
#include <omp.h>

namespace {

#ifdef __AVX512F__
constexpr int LANES = 16, FEW = 6;  // numbers in a register; rows of states in a tile, of 32 registers
constexpr int blocks_of(int rows) { return rows == 1 ? 4 : 2; }
#else
constexpr int LANES = 8, FEW = 3;  // of 16 registers
constexpr int blocks_of(int rows) { return rows == 1 ? 2 : 1; }
#endif
constexpr int BLOCK = 32, REGISTERS = BLOCK / LANES;  // outputs whose weights lie side by side
constexpr int TOGETHER = 3;  // queries of a head that look at its keys at once
constexpr int AHEAD = 32;  // inputs whose weights are fetched in advance

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

struct Matrix {
    const void* weights;  // [outputs / BLOCK, inputs, BLOCK]
    const float* scales;  // of every output; null: 1
    int64_t outputs, inputs, bytes;  // of a weight: 4 float32, 2 bfloat16, 1 int8
};

struct Layer {
    Matrix qkv, out, gate_up, down;
    const float* qkv_bias;  // or null
};

Vec all(float value) { return Vec{} + value; }

Vec load(const float* from) {
    Vec v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

void store(float* to, Vec v) { std::memcpy(to, &v, sizeof v); }

// bfloat16 is the upper half of a float32.
#ifdef __AVX512F__
Vec multiply_add(Vec a, Vec b, Vec c) { return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
Vec load(const uint16_t* from) {
    return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from)), 16);
}
Vec load(const int8_t* from) {
    return (Vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)from)));
}
#else
Vec multiply_add(Vec a, Vec b, Vec c) { return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
Vec load(const uint16_t* from) {
    return (Vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)from)), 16);
}
Vec load(const int8_t* from) {
    return (Vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from)));
}
#endif

float sum(Vec v) {
    typedef float Quarter __attribute__((vector_size(16)));
    Quarter parts[LANES / 4];
    std::memcpy(parts, &v, sizeof v);
    for (int half = LANES / 8; half; half /= 2)
        for (int i = 0; i < half; i++) parts[i] += parts[i + half];
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

// e^x for x <= 88: 2^n by the exponent's bits, the rest by the polynomial of Cephes' expf. Below -87, zero.
Vec exponential(Vec x) {
    Vec scaled = x * 1.44269504f;
    Ints n = __builtin_convertvector(scaled + (scaled < 0 ? all(-.5f) : all(.5f)), Ints);
    Vec whole = __builtin_convertvector(n, Vec), p = all(1.9875691500e-4f);
    Vec r = multiply_add(whole, all(2.12194440e-4f), multiply_add(whole, all(-.693359375f), x));
    for (float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        p = multiply_add(p, r, all(next));
    p = multiply_add(p * r, r, r) + 1.f;
    Ints bits = (n + 127) << 23;
    Vec power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -87.f ? Vec{} : p * power;
}

Vec silu(Vec x) {
    x = x < -80.f ? all(-80.f) : x;  // below, nothing is left of it
    return x / (exponential(x > 80.f ? all(-80.f) : -x) + 1.f);
}

// ROWS rows of x times BLOCKS blocks of weights.
template <class W, int ROWS, int BLOCKS, class Put>
void tile(const float* x, int64_t stride, const Matrix& m, int64_t output, int64_t row, Put put) {
    constexpr int ACROSS = BLOCKS * REGISTERS;
    const W* weights = (const W*)m.weights + output * m.inputs;
    Vec sums[ROWS][ACROSS] = {};
    x += row * stride;
    for (int64_t i = 0; i < m.inputs; i++)
        for (int o = 0; o < ACROSS; o++) {
            const W* from = weights + (o / REGISTERS * m.inputs + i) * BLOCK + o % REGISTERS * LANES;
            __builtin_prefetch(from + AHEAD * BLOCK);
            Vec some = load(from);
            for (int r = 0; r < ROWS; r++) sums[r][o] = multiply_add(all(x[r * stride + i]), some, sums[r][o]);
        }
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < ACROSS; o++) {
            int64_t at = output + o * LANES;
            put(row + r, at, m.scales ? sums[r][o] * load(m.scales + at) : sums[r][o]);
        }
}

template <class W, int ROWS, class Put>
void across(const float* x, int64_t stride, const Matrix& m, int64_t from, int64_t to, int64_t row, Put put) {
    constexpr int BLOCKS = blocks_of(ROWS);
    for (; from + BLOCKS * BLOCK <= to; from += BLOCKS * BLOCK) tile<W, ROWS, BLOCKS>(x, stride, m, from, row, put);
    for (; from < to; from += BLOCK) tile<W, ROWS, 1>(x, stride, m, from, row, put);
}

template <class W, class Put>
void product_of(const float* x, int64_t rows, int64_t stride, const Matrix& m, int64_t from, int64_t to, Put put) {
    int64_t step = rows <= FEW ? to - from : blocks_of(FEW) * BLOCK;  // weights stay near while many rows are read
    for (; from < to; from += step) {
        int64_t end = std::min(from + step, to), r = 0;
        for (; r + FEW <= rows; r += FEW) across<W, FEW>(x, stride, m, from, end, r, put);
        switch (rows - r) {
            case 1: across<W, 1>(x, stride, m, from, end, r, put); break;
            case 2: across<W, 2>(x, stride, m, from, end, r, put); break;
#ifdef __AVX512F__
            case 3: across<W, 3>(x, stride, m, from, end, r, put); break;
            case 4: across<W, 4>(x, stride, m, from, end, r, put); break;
            case 5: across<W, 5>(x, stride, m, from, end, r, put); break;
#endif
        }
    }
}

// Outputs [from, to) for all rows of x; `put(row, output, values)` takes a register of them.
template <class Put>
void product(const float* x, int64_t rows, int64_t stride, const Matrix& m, int64_t from, int64_t to, Put put) {
    if (m.bytes == 4) product_of<float>(x, rows, stride, m, from, to, put);
    if (m.bytes == 2) product_of<uint16_t>(x, rows, stride, m, from, to, put);
    if (m.bytes == 1) product_of<int8_t>(x, rows, stride, m, from, to, put);
}

void normalise(const float* x, int64_t rows, int64_t width, float floor, float* y) {
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        Vec squares = {};
        for (int64_t i = 0; i < width; i += LANES) squares = multiply_add(load(x + i), load(x + i), squares);
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
            for (int r = 0; r < ROWS; r++) means[r][i] = multiply_add(all(weights[r * stride + p]), value, means[r][i]);
        }
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDE; i++) store(y + r * y_stride + i * LANES, means[r][i] * shares[r]);
}

// ROWS queries of a head look at its keys and values [.., size]. The first sees `end` of them, each next one `more`
// more. `hidden` [ROWS, all] is added to the scores, or null.
template <int ROWS>
void attend(const float* q, int64_t stride, const float* keys, const float* values, int64_t end, int64_t more,
            int64_t size, const float* hidden, float* scores, float* y) {
    const int64_t last = end + (ROWS - 1) * more, whole = (last + LANES - 1) / LANES * LANES;
    for (int64_t p = 0; p < last; p++) {
        Vec totals[ROWS] = {};
        for (int64_t i = 0; i < size; i += LANES) {
            Vec key = load(keys + p * size + i);
            for (int r = 0; r < ROWS; r++) totals[r] = multiply_add(load(q + r * stride + i), key, totals[r]);
        }
        for (int r = 0; r < ROWS; r++) scores[r * whole + p] = sum(totals[r]);
    }
    float shares[ROWS];
    for (int r = 0; r < ROWS; r++) {
        float* own = scores + r * whole;
        for (int64_t p = 0; hidden && p < last; p++) own[p] += hidden[r * last + p];
        std::fill(own + end + r * more, own + whole, -INFINITY);
        Vec most = all(-INFINITY), total = {};
        for (int64_t p = 0; p < whole; p += LANES) most = load(own + p) > most ? load(own + p) : most;
        float highest = most[0];
        for (int i = 1; i < LANES; i++) highest = std::max(highest, most[i]);
        for (int64_t p = 0; p < whole; p += LANES) {
            Vec e = exponential(load(own + p) - highest);
            store(own + p, e);
            total += e;
        }
        shares[r] = 1.f / sum(total);
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

float* scratch(int which, int64_t size) {  // kept from call to call
    thread_local std::vector<float> kept[5];
    if ((int64_t)kept[which].size() < size) kept[which].resize(size);
    return kept[which].data();
}

}  // namespace

extern "C" {

// x [rows, inputs] times the matrix: y [rows, outputs].
void specdec_product(const Matrix* m, const float* x, int64_t rows, float* y, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Share share(m->outputs, BLOCK);
        product(x, rows, m->inputs, *m, share.from, share.to,
                [&](int64_t r, int64_t o, Vec values) { store(y + r * m->outputs + o, values); });
    }
}

// x [rows, width] at `start` through `count` layers, in place. `cache` is that of the first layer: keys of all heads,
// then values, each [capacity, size]; `angles` [rows, size / 2] are complex. `hidden` [rows, start + rows] is -inf at
// what a row may not see; where it is null a row sees what is before it or, if not `causal`, everything. `read` is what
// the attention of the first layer reads, where that is not the normed x.
void specdec_layers(const Layer* layers, int64_t count, float* x, int64_t rows, int64_t width, const float* read,
                    float* cache, int64_t layer_stride, int64_t capacity, int64_t start, int64_t heads,
                    int64_t kv_heads, int64_t size, const float* angles, const float* hidden, int causal, float floor,
                    int threads) {
    const int64_t stored = heads * size, turned = (heads + kv_heads) * size, inner = layers->down.inputs;
    const int64_t groups = (rows + TOGETHER - 1) / TOGETHER, more = causal && !hidden;
    float* queries = scratch(0, rows * stored);
    float* seen = scratch(1, rows * stored);
    float* gated = scratch(2, rows * inner);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float* normed = scratch(3, rows * width);
        float* scores = scratch(4, TOGETHER * (start + rows + LANES));
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
            product(from, rows, layer.qkv.inputs, layer.qkv, mine.from, mine.to, put);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t o = mine.from; o < std::min(mine.to, turned); o += 2) {
                    float* pair = place(r, o);
                    const float* angle = angles + r * size + o % size;
                    float real = pair[0] * angle[0] - pair[1] * angle[1];
                    pair[1] = pair[0] * angle[1] + pair[1] * angle[0];
                    pair[0] = real;
                }
#pragma omp barrier
            Share looks(heads * groups, 1);
            for (int64_t look = looks.from; look < looks.to; look++) {
                int64_t head = look % heads, r = look / heads * TOGETHER, kv = head * kv_heads / heads;
                auto at = [&](auto rows_here) {
                    attend<rows_here>(queries + r * stored + head * size, stored, entries + kv * capacity * size,
                                      entries + (kv_heads + kv) * capacity * size, start + (more ? r + 1 : rows), more,
                                      size, hidden ? hidden + r * (start + rows) : nullptr, scores,
                                      seen + r * stored + head * size);
                };
                switch (std::min<int64_t>(rows - r, TOGETHER)) {
                    case 1: at(std::integral_constant<int, 1>{}); break;
                    case 2: at(std::integral_constant<int, 2>{}); break;
                    case 3: at(std::integral_constant<int, 3>{}); break;
                }
            }
#pragma omp barrier
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
            product(seen, rows, stored, layer.out, part.from, part.to, add);
#pragma omp barrier
            normalise(x, rows, width, floor, normed);
            product(normed, rows, width, layer.gate_up, units.from, units.to, gate);
            product(normed, rows, width, layer.gate_up, inner + units.from, inner + units.to, weigh);
#pragma omp barrier
            product(gated, rows, inner, layer.down, part.from, part.to, add);
#pragma omp barrier
        }
    }
}
}
