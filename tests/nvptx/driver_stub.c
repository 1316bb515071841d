/* A driver for tests: memory of the host, commands run at once, kernels by a function of the test.
   What cuda-bindings calls here it calls of the real driver, with the same arguments. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int R;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500 };
typedef struct { const char *text, *name; } Function;
typedef void (*Launched)(const char *, const char *, unsigned, unsigned, void **);
typedef void (*Noted)(int);
static Launched launched;
static Noted noted;
static size_t left = 1u << 30;
static int devices = 1, capturing;

void stub_set(Launched f, Noted g, size_t memory, int count) {
    launched = f, noted = g, left = memory, devices = count;
}
R cuInit(unsigned flags) { return flags ? INVALID : devices ? OK : NO_DEVICE; }
R cuDriverGetVersion(int *v) { return *v = 13000, OK; }
R cuDeviceGetCount(int *n) { return *n = devices, OK; }
R cuDeviceGet(int *d, int n) { return *d = n, OK; }
R cuDeviceGetName(char *s, int n, int d) { return strncpy(s, "a stub", n), OK; }
R cuDeviceGetAttribute(int *v, int what, int d) { return *v = what == 75 ? 8 : 0, OK; }
R cuDevicePrimaryCtxRetain(void **c, int d) { return *c = (void *)16, OK; }
R cuCtxSetCurrent(void *c) { return c == (void *)16 ? OK : INVALID; }
R cuStreamCreate(void **s, unsigned f) { return *s = (void *)32, OK; }
R cuStreamSynchronize(void *s) { return capturing ? 900 : OK; }
R cuMemGetInfo_v2(size_t *f, size_t *t) { return *f = left, *t = 1u << 30, OK; }
R cuMemAlloc_v2(uint64_t *p, size_t n) {
    if (n > left) return OUT_OF_MEMORY;
    left -= n;
    uint64_t *block = aligned_alloc(256, n + 256);
    block[0] = n;
    return *p = (uint64_t)block + 256, OK;
}
R cuMemFree_v2(uint64_t p) {
    uint64_t *block = (uint64_t *)(p - 256);
    return left += block[0], free(block), OK;
}
R cuMemcpyHtoDAsync_v2(uint64_t d, const void *s, size_t n, void *t) { return memcpy((void *)d, s, n), OK; }
R cuMemcpyDtoHAsync_v2(void *d, uint64_t s, size_t n, void *t) { return memcpy(d, (void *)s, n), OK; }
R cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, void *t) { return memmove((void *)d, (void *)s, n), OK; }
R cuModuleLoadData(void **m, const void *text) {
    return strstr(text, ".version") ? (*m = strdup(text), OK) : 218;
}
R cuModuleGetFunction(Function **f, void *m, const char *name) {
    *f = malloc(sizeof **f);
    return (*f)->text = m, (*f)->name = strdup(name), OK;
}
R cuLaunchKernel(Function *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, void *stream, void **parameters, void **extra) {
    if (y != 1 || z != 1 || by != 1 || bz != 1 || shared || stream != (void *)32 || extra) return INVALID;
    return launched(f->text, f->name, x, bx, parameters), OK;
}
R cuStreamBeginCapture_v2(void *s, int mode) { return capturing = 1, noted(0), OK; }
R cuStreamEndCapture(void *s, void **g) { return capturing = 0, noted(1), *g = (void *)48, OK; }
R cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long f) { return *e = (void *)64, OK; }
R cuGraphDestroy(void *g) { return OK; }
R cuGraphLaunch(void *e, void *s) { return noted(2), OK; }
R cuGraphExecDestroy(void *e) { return OK; }
R cuGetErrorName(int e, const char **s) { return *s = "CUDA_ERROR", OK; }
R cuGetErrorString(int e, const char **s) { return *s = e == NO_DEVICE ? "no device" : "an error", OK; }

R cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status) {
    static const char *ends[] = {"_v2", "WithFlags", ""};
    char whole[128];
    for (int i = 0; i < 3; i++) {
        strcpy(whole, name);
        if ((*f = dlsym(RTLD_DEFAULT, strcat(whole, ends[i])))) return OK;
        static void *own;
        if (!own) own = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (own && (*f = dlsym(own, whole))) return OK;
    }
    if (status) *status = 1;
    return NOT_FOUND;
}
R cuGetProcAddress(const char *name, void **f, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, f, version, flags, 0);
}
