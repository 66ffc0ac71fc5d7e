#include <duet.h>
PMU(clock, "task-clock");
