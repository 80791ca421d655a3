/* A stand-in for the driver, compiled by the tests as libcuda.so.1. A kernel is "launched" by cuLaunch; a bad one fails when
 * the context is next waited for, and from then on, as on a device. */

static int launched_bad, failed, capturing;
static int waits;

int cuLaunch(int bad) { launched_bad |= bad; return 0; }
int cuBeginCapture(int on) { capturing = on; return 0; }
int waits_so_far(void) { return waits; }

int cuCtxGetCurrent(void **context) { *context = &failed; return 0; }
int cuStreamIsCapturing(void *stream, int *status) { *status = 0; return capturing ? 906 : 0; }
int cuCtxSynchronize(void) {
  waits++;
  failed |= launched_bad;
  return failed ? 700 : 0;
}
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "an illegal memory access was encountered"; return 0; }
