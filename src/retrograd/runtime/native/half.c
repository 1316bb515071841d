/* Conversions between float16 and float32 for CPUs without instructions for them: LLVM calls
   functions of these names there, which no library of the process need have. Integer arithmetic
   rounds to nearest, ties to even; an addition of floats does it for subnormals. */

#include "runtime.h"

#if defined(__x86_64__)
/* How a half is passed: Darwin's convention for these two is older than the type. */
#if defined(__APPLE__)
typedef uint16_t half;
#define HALF(bits) (bits)
#define BITS(value) (value)
#else
typedef _Float16 half;
#define HALF(bits) ((union { uint16_t integer; half value; }){.integer = (bits)}.value)
#define BITS(number) ((union { half value; uint16_t integer; }){.value = (number)}.integer)
#endif
#define FLOAT(bits) ((union { uint32_t integer; float value; }){.integer = (bits)}.value)
#define FLOAT_BITS(number) ((union { float value; uint32_t integer; }){.value = (number)}.integer)

half __truncsfhf2(float x);
float __extendhfsf2(half x);

half __truncsfhf2(float x)
{
    uint32_t bits = FLOAT_BITS(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000, y;
    if (size > 0x7f800000)
        y = (size >> 13 & 0x3ff) | 0x7e00; /* a quiet NaN */
    else if (size >= 0x47800000)
        y = 0x7c00; /* infinity: 65536 and above; less is rounded up to it below */
    else if (size < 0x38800000) /* subnormal: added to 0.5, it is where its bits belong */
        y = FLOAT_BITS(FLOAT(size) + FLOAT(0x3f000000)) - 0x3f000000;
    else
        y = (size - 0x37fff001 + (size >> 13 & 1)) >> 13;
    return HALF((uint16_t)(y | sign));
}

float __extendhfsf2(half x)
{
    uint32_t bits = BITS(x), size = bits & 0x7fff, sign = (bits & 0x8000) << 16, y;
    if (size >= 0x7c00)
        y = (size << 13) + 0x70000000; /* infinity or NaN */
    else if (size >= 0x400)
        y = (size << 13) + 0x38000000;
    else /* subnormal */
        y = FLOAT_BITS(FLOAT((size << 13) + 0x38800000) - FLOAT(0x38800000));
    return FLOAT(y | sign);
}
#endif
