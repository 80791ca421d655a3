// Stands in for the driver's libnvidia-ml.so.1 where there is none: two GPUs, of which the second reports an Xid once.
// Only what the sampling calls; memory grows with every look.
#include <string.h>

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process;
typedef struct {
  void *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} event;

static int gpus[2];
static unsigned long long looks[2];
static int told;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (index > 1) return 2;
  *device = &gpus[index];
  return 0;
}
static int number(void *device) { return (int *)device == &gpus[1]; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
  strncpy(uuid, number(device) ? "GPU-bbbb" : "GPU-aaaa", length);
  return 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  (void)device;
  strncpy(name, "Stand-in", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory *info) {
  info->total = 1000000;
  info->used = 1000 * ++looks[number(device)];
  info->free = info->total - info->used;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
  (void)device;
  rates->gpu = 55;
  rates->memory = 5;
  return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
  (void)device, (void)sensor;
  *degrees = 41;
  return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 300000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  (void)device;
  *reasons = 0x4;
  return 0;
}
// Not every GPU has ECC: NVML_ERROR_NOT_SUPPORTED.
int nvmlDeviceGetTotalEccErrors(void *device, int error, int counter, unsigned long long *count) {
  (void)device, (void)error, (void)counter, (void)count;
  return 3;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *list) {
  unsigned room = *count;
  (void)device;
  *count = 1;
  if (room < 1 || !list) return 7;
  list[0].pid = 4321;
  list[0].used = 777;
  list[0].gpu_instance = list[0].compute_instance = 0xffffffff;
  return 0;
}
int nvmlEventSetCreate(void **set) { *set = &told; return 0; }
int nvmlEventSetFree(void *set) { (void)set; return 0; }
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
  (void)device, (void)set;
  return types == 8 ? 0 : 2;
}
int nvmlEventSetWait_v2(void *set, event *data, unsigned timeout) {
  (void)set;
  if (timeout || told) return 10;
  told = 1;
  memset(data, 0, sizeof *data);
  data->device = &gpus[1];
  data->type = 8;
  data->data = 31;
  return 0;
}
