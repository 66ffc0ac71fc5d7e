#include <duet.h>
#include <linux/bpf.h>
