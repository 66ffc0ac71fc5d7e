/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the C library: limits, flags, errors. Part of duet/libc.h. */
#pragma once

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#define assert(condition) ((condition) ? (void)0 : __duet_assert(#condition, __FILE__, __LINE__))

#define CHAR_BIT   8
#define SCHAR_MIN  (-128)
#define SCHAR_MAX  127
#define UCHAR_MAX  255
#define CHAR_MIN   SCHAR_MIN
#define CHAR_MAX   SCHAR_MAX
#define SHRT_MIN   (-32768)
#define SHRT_MAX   32767
#define USHRT_MAX  65535
#define INT_MAX    2147483647
#define INT_MIN    (-INT_MAX - 1)
#define UINT_MAX   4294967295U
#define LONG_MAX   9223372036854775807L
#define LONG_MIN   (-LONG_MAX - 1)
#define ULONG_MAX  18446744073709551615UL
#define LLONG_MAX  9223372036854775807LL
#define LLONG_MIN  (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define INT8_MIN   SCHAR_MIN
#define INT8_MAX   SCHAR_MAX
#define UINT8_MAX  UCHAR_MAX
#define INT16_MIN  SHRT_MIN
#define INT16_MAX  SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN  INT_MIN
#define INT32_MAX  INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN  LLONG_MIN
#define INT64_MAX  LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX   ULONG_MAX
#define PRId64     "lld"
#define PRIu64     "llu"
#define PRIx64     "llx"
#define PATH_MAX   4096

#define EOF          (-1)
#define BUFSIZ       8192
#define SEEK_SET     0
#define SEEK_CUR     1
#define SEEK_END     2
#define _IOFBF       0
#define _IOLBF       1
#define _IONBF       2
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX     2147483647

#define STDIN_FILENO  0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define R_OK          4
#define W_OK          2
#define X_OK          1
#define F_OK          0
#define O_RDONLY      0
#define O_WRONLY      1
#define O_RDWR        2
#define O_CREAT       0100
#define O_EXCL        0200
#define O_NOCTTY      0400
#define O_TRUNC       01000
#define O_APPEND      02000
#define O_NONBLOCK    04000
#define O_CLOEXEC     02000000
#if defined(__TARGET_ARCH_arm64)
#define O_DIRECTORY 040000
#define O_NOFOLLOW  0100000
#else
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000
#endif
#define S_IFMT        0170000
#define S_IFREG       0100000
#define S_IFDIR       0040000
#define S_ISREG(mode) (((mode)&S_IFMT) == S_IFREG)
#define S_ISDIR(mode) (((mode)&S_IFMT) == S_IFDIR)

#define CLOCKS_PER_SEC           1000000L
#define CLOCK_REALTIME           0
#define CLOCK_MONOTONIC          1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID  3
#define CLOCK_MONOTONIC_RAW      4
#define CLOCK_BOOTTIME           7

#define SIGHUP  1
#define SIGINT  2
#define SIGQUIT 3
#define SIGKILL 9
#define SIGUSR1 10
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19

#define _SC_CLK_TCK          2
#define _SC_PAGESIZE         30
#define _SC_NPROCESSORS_CONF 83
#define _SC_NPROCESSORS_ONLN 84
#define _SC_PHYS_PAGES       85

#define M_E      2.7182818284590452354
#define M_LOG2E  1.4426950408889634074
#define M_LN2    0.69314718055994530942
#define M_LN10   2.30258509299404568402
#define M_PI     3.14159265358979323846
#define M_SQRT2  1.41421356237309504880
#define HUGE_VAL (__builtin_huge_val())
#define INFINITY (__builtin_inff())
#define NAN      (__builtin_nanf(""))

#define EPERM        1
#define ENOENT       2
#define ESRCH        3
#define EINTR        4
#define EIO          5
#define ENXIO        6
#define E2BIG        7
#define ENOEXEC      8
#define EBADF        9
#define ECHILD       10
#define EAGAIN       11
#define ENOMEM       12
#define EACCES       13
#define EFAULT       14
#define ENOTBLK      15
#define EBUSY        16
#define EEXIST       17
#define EXDEV        18
#define ENODEV       19
#define ENOTDIR      20
#define EISDIR       21
#define EINVAL       22
#define ENFILE       23
#define EMFILE       24
#define ENOTTY       25
#define ETXTBSY      26
#define EFBIG        27
#define ENOSPC       28
#define ESPIPE       29
#define EROFS        30
#define EMLINK       31
#define EPIPE        32
#define EDOM         33
#define ERANGE       34
#define EDEADLK      35
#define ENAMETOOLONG 36
#define ENOLCK       37
#define ENOSYS       38
#define ENOTEMPTY    39
#define ELOOP        40
#define ENODATA      61
#define ETIME        62
#define EPROTO       71
#define EBADMSG      74
#define EOVERFLOW    75
#define EILSEQ       84
#define EUSERS       87
#define EMSGSIZE     90
#define EOPNOTSUPP   95
#define EADDRINUSE   98
#define ECONNRESET   104
#define ENOBUFS      105
#define ETIMEDOUT    110
#define ECONNREFUSED 111
#define EALREADY     114
#define EINPROGRESS  115
#define ESTALE       116
#define ECANCELED    125
#define EWOULDBLOCK  EAGAIN
#define ENOTSUP      EOPNOTSUPP
