#include <duet.h>
#include <sys/socket.h>
