/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C and math library for the user half: prototypes, types and constants, in one header that
 * agrees with vmlinux.h (the system's own headers do not). <stdio.h>, <string.h> ... include it.
 *
 * These are the functions of the C library that duet runs with, called at native speed. What a
 * BPF call cannot do is left out: more than five arguments, structures by value. Doubles may be
 * handed on but not computed with (f64_add() and kin, duet/report.h). malloc() and free() use a
 * private heap that ends with the run. A script may declare any other function itself.
 *
 * struct tm and struct stat are the kernel's where vmlinux.h has them: the C library's are struct
 * libc_tm and struct libc_stat, which <time.h> and <sys/stat.h> call by their usual names.
 */
#pragma once

/* ---- types (identical to those of vmlinux.h where it has them) -------------------------------- */

typedef unsigned long size_t;
typedef long ssize_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef long long intmax_t;
typedef unsigned long long uintmax_t;
typedef _Bool bool;
typedef long off_t;
typedef long time_t;
typedef long clock_t;
typedef int clockid_t;
typedef int pid_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
#ifndef __VMLINUX_H__
typedef unsigned int mode_t;
#endif
typedef unsigned int useconds_t;

/* Only handed around, never looked into. */
typedef struct _IO_FILE FILE;
typedef struct __dirstream DIR;

struct timespec {
	time_t tv_sec;
	long tv_nsec;
};
struct timeval {
	time_t tv_sec;
	long tv_usec;
};
struct libc_tm {
	int tm_sec;
	int tm_min;
	int tm_hour;
	int tm_mday;
	int tm_mon;  /* 0 to 11 */
	int tm_year; /* since 1900 */
	int tm_wday;
	int tm_yday;
	int tm_isdst;
	long tm_gmtoff;
	const char *tm_zone;
};
#if defined(__TARGET_ARCH_arm64)
struct libc_stat {
	unsigned long st_dev, st_ino;
	unsigned int st_mode, st_nlink, st_uid, st_gid;
	unsigned long st_rdev, __pad1;
	long st_size;
	int st_blksize, __pad2;
	long st_blocks;
	struct timespec st_atim, st_mtim, st_ctim;
	unsigned int __reserved[2];
};
#else
struct libc_stat {
	unsigned long st_dev, st_ino, st_nlink;
	unsigned int st_mode, st_uid, st_gid, __pad0;
	unsigned long st_rdev;
	long st_size, st_blksize, st_blocks;
	struct timespec st_atim, st_mtim, st_ctim;
	long __reserved[3];
};
#endif
struct libc_dirent {
	unsigned long d_ino;
	long d_off;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[256];
};

#include <duet/libc_constants.h>

/* ---- <errno.h>, <assert.h> -------------------------------------------------------------------- */

extern int *__errno_location(void);
/* errno: why the last C library call failed. */
#define errno (*__errno_location())
/* Ends the hook as a fault with the condition and its place. */
extern void __duet_assert(const char *condition, const char *file, int line);

/* ---- <stdio.h> (printf, fprintf, snprintf: duet/print.h) -------------------------------------- */

extern FILE *stdin, *stdout, *stderr;
/* puts: a line to stdout; fputs(text, stdout) has no newline. */
extern int puts(const char *text);
/* putchar: one character to stdout. */
extern int putchar(int c);
/* fputs: a text to a file. */
extern int fputs(const char *text, FILE *file);
/* fputc: one character to a file. */
extern int fputc(int c, FILE *file);
/* fopen: opens a file ("r", "w", "a"); NULL and errno on failure. */
extern FILE *fopen(const char *path, const char *mode);
/* fdopen: a FILE over a descriptor, which it then owns. */
extern FILE *fdopen(int fd, const char *mode);
/* fclose: flushes and closes. */
extern int fclose(FILE *file);
/* fflush: writes what is buffered. */
extern int fflush(FILE *file);
/* fread: reads whole elements; how many. */
extern size_t fread(void *data, size_t size, size_t count, FILE *file);
/* fwrite: writes whole elements; how many. */
extern size_t fwrite(const void *data, size_t size, size_t count, FILE *file);
/* fgets: a line of at most size - 1 characters; NULL at the end. */
extern char *fgets(char *line, int size, FILE *file);
/* fgetc: the next character or EOF. */
extern int fgetc(FILE *file);
/* ungetc: puts a character back. */
extern int ungetc(int c, FILE *file);
/* getline: a line of any length into a malloc()ed buffer; its length, or -1. */
extern ssize_t getline(char **line, size_t *size, FILE *file);
/* feof: has the end been read? */
extern int feof(FILE *file);
/* ferror: has an operation failed? */
extern int ferror(FILE *file);
/* clearerr: forgets end and error. */
extern void clearerr(FILE *file);
/* fseek: moves to SEEK_SET, SEEK_CUR or SEEK_END + offset. */
extern int fseek(FILE *file, long offset, int whence);
/* ftell: where the next read or write happens. */
extern long ftell(FILE *file);
/* rewind: back to the start. */
extern void rewind(FILE *file);
/* fileno: the descriptor below. */
extern int fileno(FILE *file);
/* setvbuf: chooses the buffering. */
extern int setvbuf(FILE *file, char *buffer, int mode, size_t size);
/* popen: runs a shell command with a pipe to or from it. */
extern FILE *popen(const char *command, const char *mode);
/* pclose: ends popen(); the wait status. */
extern int pclose(FILE *file);
/* perror: TEXT: reason of errno, to stderr. */
extern void perror(const char *text);
/* remove: deletes a file or empty folder. */
extern int remove(const char *path);
/* rename: renames, replacing what is there. */
extern int rename(const char *from, const char *to);
/* tmpfile: a file without a name. */
extern FILE *tmpfile(void);
/* sscanf: reads at most three values from a text. */
extern int sscanf(const char *from, const char *format, ...)
	__attribute__((format(__scanf__, 2, 3)));
/* fscanf: reads at most three values from a file. */
extern int fscanf(FILE *file, const char *format, ...) __attribute__((format(__scanf__, 2, 3)));

/* ---- <stdlib.h> --------------------------------------------------------------------------- */

/* malloc: memory from the private heap; NULL when there is none. */
extern void *malloc(size_t size);
/* calloc: zeroed memory. */
extern void *calloc(size_t count, size_t size);
/* realloc: grows or shrinks; the old pointer is void unless NULL came back. */
extern void *realloc(void *memory, size_t size);
/* free: gives memory back; NULL is fine. */
extern void free(void *memory);
/* atoi: decimal text as int. */
extern int atoi(const char *text);
/* atol: decimal text as long. */
extern long atol(const char *text);
/* atoll: decimal text as long long. */
extern long long atoll(const char *text);
/* atof: text as double. */
extern double atof(const char *text);
/* strtol: text in base 2 to 36 (0: as C writes it). */
extern long strtol(const char *text, char **end, int base);
/* strtoll: the same, long long. */
extern long long strtoll(const char *text, char **end, int base);
/* strtoul: the same, unsigned. */
extern unsigned long strtoul(const char *text, char **end, int base);
/* strtoull: the same, unsigned long long. */
extern unsigned long long strtoull(const char *text, char **end, int base);
/* strtod: text as double. */
extern double strtod(const char *text, char **end);
/* qsort: sorts; compare is a function of the script (or of the C library). */
extern void qsort(void *base, size_t count, size_t size,
		  int (*compare)(const void *, const void *));
/* bsearch: finds in a sorted array; NULL: absent. */
extern void *bsearch(const void *key, const void *base, size_t count, size_t size,
		     int (*compare)(const void *, const void *));
/* abs: absolute value. */
extern int abs(int value);
/* labs: absolute value. */
extern long labs(long value);
/* llabs: absolute value. */
extern long long llabs(long long value);
/* rand: a pseudo-random number up to RAND_MAX. */
extern int rand(void);
/* srand: seeds rand(). */
extern void srand(unsigned int seed);
/* random: a better one. */
extern long random(void);
/* srandom: seeds random(). */
extern void srandom(unsigned int seed);
/* getenv: an environment variable, or NULL. */
extern char *getenv(const char *name);
/* setenv: sets one. */
extern int setenv(const char *name, const char *value, int overwrite);
/* system: runs a shell command; the wait status. */
extern int system(const char *command);
/* mkstemp: a new file from a template that ends in XXXXXX; its descriptor. */
extern int mkstemp(char *path);
/* realpath: the path without links; malloc()ed when resolved is NULL. */
extern char *realpath(const char *path, char *resolved);

/* ---- <string.h>, <strings.h> -------------------------------------------------------------- */

/* memcpy: copies; inline when the size is a constant of at most 1024 (both halves). */
extern void *memcpy(void *to, const void *from, size_t size);
/* memmove: copies, regions may overlap. */
extern void *memmove(void *to, const void *from, size_t size);
/* memset: fills; inline when the size is a constant of at most 1024 (both halves). */
extern void *memset(void *to, int byte, size_t size);
/* memcmp: compares bytes. */
extern int memcmp(const void *a, const void *b, size_t size);
/* memchr: the first such byte, or NULL. */
extern void *memchr(const void *memory, int byte, size_t size);
/* memrchr: the last such byte, or NULL. */
extern void *memrchr(const void *memory, int byte, size_t size);
/* memmem: the first place of one block in another, or NULL. */
extern void *memmem(const void *memory, size_t size, const void *part, size_t part_size);
/* strlen: bytes before the NUL. */
extern size_t strlen(const char *text);
/* strnlen: the same, at most limit. */
extern size_t strnlen(const char *text, size_t limit);
/* strcmp: compares texts. */
extern int strcmp(const char *a, const char *b);
/* strncmp: compares at most size bytes. */
extern int strncmp(const char *a, const char *b, size_t size);
/* strcasecmp: the same, letters in either case. */
extern int strcasecmp(const char *a, const char *b);
/* strncasecmp: the same, at most size bytes. */
extern int strncasecmp(const char *a, const char *b, size_t size);
/* strverscmp: compares texts with numbers in them. */
extern int strverscmp(const char *a, const char *b);
/* strcpy: copies a text; mind the room (text() and snprintf() do). */
extern char *strcpy(char *to, const char *from);
/* strncpy: copies at most size bytes, pads with NULs. */
extern char *strncpy(char *to, const char *from, size_t size);
/* stpcpy: as strcpy(), returns the end. */
extern char *stpcpy(char *to, const char *from);
/* strcat: appends; mind the room. */
extern char *strcat(char *to, const char *from);
/* strncat: appends at most size bytes and a NUL. */
extern char *strncat(char *to, const char *from, size_t size);
/* strchr: the first such character, or NULL. */
extern char *strchr(const char *text, int c);
/* strrchr: the last such character, or NULL. */
extern char *strrchr(const char *text, int c);
/* strchrnul: as strchr(), or the end. */
extern char *strchrnul(const char *text, int c);
/* strstr: the first place of a text in another, or NULL. */
extern char *strstr(const char *text, const char *part);
/* strcasestr: the same, letters in either case. */
extern char *strcasestr(const char *text, const char *part);
/* strspn: length of the start that holds only these. */
extern size_t strspn(const char *text, const char *accept);
/* strcspn: length of the start that holds none of these. */
extern size_t strcspn(const char *text, const char *reject);
/* strpbrk: the first of these characters, or NULL. */
extern char *strpbrk(const char *text, const char *accept);
/* strtok_r: the next word; state is kept in *save. */
extern char *strtok_r(char *text, const char *separators, char **save);
/* strsep: cuts the next field out of *text. */
extern char *strsep(char **text, const char *separators);
/* strdup: a malloc()ed copy. */
extern char *strdup(const char *text);
/* strndup: the same, at most size bytes. */
extern char *strndup(const char *text, size_t size);
/* strerror: an errno in words. */
extern char *strerror(int error);
/* strsignal: a signal number in words. */
extern char *strsignal(int number);
/* basename: the last part of a path (the string.h one: leaves the path as it is). */
extern char *basename(const char *path);

/* Constant sizes are expanded in place, which the kernel half needs. */
#define memcpy(to, from, size)                                                           \
	(__builtin_constant_p(size) && (size) <= 1024 ? __builtin_memcpy(to, from, size) \
						      : (memcpy)(to, from, size))
#define memset(to, byte, size)                                                           \
	(__builtin_constant_p(size) && (size) <= 1024 ? __builtin_memset(to, byte, size) \
						      : (memset)(to, byte, size))

/* ---- <ctype.h> -------------------------------------------------------------------------------- */

/* isalpha: a letter? */
extern int isalpha(int c);
/* isdigit: a digit? */
extern int isdigit(int c);
/* isalnum: a letter or digit? */
extern int isalnum(int c);
/* isspace: white space? */
extern int isspace(int c);
/* isupper: an upper-case letter? */
extern int isupper(int c);
/* islower: a lower-case letter? */
extern int islower(int c);
/* ispunct: punctuation? */
extern int ispunct(int c);
/* isprint: printable? */
extern int isprint(int c);
/* iscntrl: a control character? */
extern int iscntrl(int c);
/* isxdigit: a hexadecimal digit? */
extern int isxdigit(int c);
/* toupper: in upper case. */
extern int toupper(int c);
/* tolower: in lower case. */
extern int tolower(int c);

/* ---- <time.h>, <sys/time.h> --------------------------------------------------------------- */

/* time: seconds since 1970. */
extern time_t time(time_t *now);
/* clock: CPU time of duet in 1 / CLOCKS_PER_SEC. */
extern clock_t clock(void);
/* clock_gettime: a clock (CLOCK_MONOTONIC ...). */
extern int clock_gettime(clockid_t clock, struct timespec *now);
/* clock_getres: its resolution. */
extern int clock_getres(clockid_t clock, struct timespec *resolution);
/* gettimeofday: microseconds since 1970; zone is NULL. */
extern int gettimeofday(struct timeval *now, void *zone);
/* localtime_r: broken down in the local zone. */
extern struct libc_tm *localtime_r(const time_t *time, struct libc_tm *result);
/* gmtime_r: broken down in UTC. */
extern struct libc_tm *gmtime_r(const time_t *time, struct libc_tm *result);
/* mktime: back to seconds (local zone). */
extern time_t mktime(struct libc_tm *tm);
/* timegm: back to seconds (UTC). */
extern time_t timegm(struct libc_tm *tm);
/* strftime: a date as text ("%F %T"); bytes written, 0: no room. */
extern size_t strftime(char *buffer, size_t size, const char *format, const struct libc_tm *tm);
/* nanosleep: sleeps; duet does nothing meanwhile. */
extern int nanosleep(const struct timespec *wanted, struct timespec *rest);
/* usleep: the same, microseconds. */
extern int usleep(useconds_t microseconds);
/* sleep: the same, seconds. */
extern unsigned int sleep(unsigned int seconds);

/* ---- <unistd.h>, <fcntl.h>, <sys/stat.h>, <dirent.h>, <signal.h> --------------------------- */

/* open: opens a file; mode is for O_CREAT. A descriptor, or -1. */
extern int open(const char *path, int flags, int mode);
/* close: closes a descriptor. */
extern int close(int fd);
/* read: reads; bytes, 0 at the end, -1. */
extern ssize_t read(int fd, void *data, size_t size);
/* write: writes; bytes, or -1. */
extern ssize_t write(int fd, const void *data, size_t size);
/* pread: reads at an offset. */
extern ssize_t pread(int fd, void *data, size_t size, off_t offset);
/* pwrite: writes at an offset. */
extern ssize_t pwrite(int fd, const void *data, size_t size, off_t offset);
/* lseek: moves the offset. */
extern off_t lseek(int fd, off_t offset, int whence);
/* ftruncate: sets the size. */
extern int ftruncate(int fd, off_t size);
/* fsync: waits until it is on the disk. */
extern int fsync(int fd);
/* access: may we (R_OK, W_OK, X_OK, F_OK)? 0: yes. */
extern int access(const char *path, int mode);
/* unlink: deletes a file. */
extern int unlink(const char *path);
/* mkdir: makes a folder. */
extern int mkdir(const char *path, unsigned int mode);
/* rmdir: deletes an empty folder. */
extern int rmdir(const char *path);
/* readlink: the target of a link, without NUL; its length. */
extern ssize_t readlink(const char *path, char *buffer, size_t size);
/* getcwd: the working folder. */
extern char *getcwd(char *buffer, size_t size);
/* isatty: a terminal? */
extern int isatty(int fd);
/* getpid: duet's own process id. */
extern pid_t getpid(void);
/* getuid: duet's user id. */
extern uid_t getuid(void);
/* gethostname: this machine's name. */
extern int gethostname(char *buffer, size_t size);
/* sysconf: _SC_PAGESIZE, _SC_NPROCESSORS_ONLN ... */
extern long sysconf(int name);
/* kill: sends a signal. */
extern int kill(pid_t pid, int number);
/* stat: what a path is. */
extern int stat(const char *path, struct libc_stat *result);
/* lstat: the same, of a link itself. */
extern int lstat(const char *path, struct libc_stat *result);
/* fstat: what an open file is. */
extern int fstat(int fd, struct libc_stat *result);
/* opendir: opens a folder for readdir(). */
extern DIR *opendir(const char *path);
/* readdir: the next entry, or NULL. */
extern struct libc_dirent *readdir(DIR *folder);
/* closedir: ends it. */
extern int closedir(DIR *folder);

/* ---- <sys/wait.h>: what the status of struct duet_child says ----------------------------------- */
#define WTERMSIG(status)    ((status)&0x7f)
#define WEXITSTATUS(status) (((status) >> 8) & 0xff)
#define WIFEXITED(status)   (!WTERMSIG(status))
#define WIFSIGNALED(status) (WTERMSIG(status) && WTERMSIG(status) != 0x7f)
#define WCOREDUMP(status)   (!!((status)&0x80))

/* ---- <math.h> ----------------------------------------------------------------------------- */

/* sqrt: square root. */
extern double sqrt(double x);
/* cbrt: cube root. */
extern double cbrt(double x);
/* exp: e to the x. */
extern double exp(double x);
/* exp2: 2 to the x. */
extern double exp2(double x);
/* expm1: exp(x) - 1, exact near 0. */
extern double expm1(double x);
/* log: natural logarithm. */
extern double log(double x);
/* log2: binary logarithm. */
extern double log2(double x);
/* log10: decimal logarithm. */
extern double log10(double x);
/* log1p: log(1 + x), exact near 0. */
extern double log1p(double x);
/* sin: sine. */
extern double sin(double x);
/* cos: cosine. */
extern double cos(double x);
/* tan: tangent. */
extern double tan(double x);
/* asin: arc sine. */
extern double asin(double x);
/* acos: arc cosine. */
extern double acos(double x);
/* atan: arc tangent. */
extern double atan(double x);
/* sinh: hyperbolic sine. */
extern double sinh(double x);
/* cosh: hyperbolic cosine. */
extern double cosh(double x);
/* tanh: hyperbolic tangent. */
extern double tanh(double x);
/* erf: error function. */
extern double erf(double x);
/* erfc: 1 - erf(x). */
extern double erfc(double x);
/* tgamma: gamma function. */
extern double tgamma(double x);
/* lgamma: logarithm of the gamma function. */
extern double lgamma(double x);
/* floor: next integer below. */
extern double floor(double x);
/* ceil: next integer above. */
extern double ceil(double x);
/* trunc: rounded towards 0. */
extern double trunc(double x);
/* round: nearest integer, halves away from 0. */
extern double round(double x);
/* rint: nearest integer, halves to even. */
extern double rint(double x);
/* fabs: absolute value. */
extern double fabs(double x);
/* pow: x to the y. */
extern double pow(double x, double y);
/* fmod: remainder of x / y. */
extern double fmod(double x, double y);
/* hypot: sqrt(x*x + y*y). */
extern double hypot(double x, double y);
/* atan2: angle of the point (y, x). */
extern double atan2(double x, double y);
/* fmin: the smaller. */
extern double fmin(double x, double y);
/* fmax: the larger. */
extern double fmax(double x, double y);
/* fdim: x - y, or 0. */
extern double fdim(double x, double y);
/* copysign: x with the sign of y. */
extern double copysign(double x, double y);
/* fma: x * y + z, rounded once. */
extern double fma(double x, double y, double z);
/* ldexp: x * 2 to the exponent. */
extern double ldexp(double x, int exponent);
/* frexp: fraction in [0.5, 1) and exponent. */
extern double frexp(double x, int *exponent);
/* modf: fraction and whole part. */
extern double modf(double x, double *whole);
/* lround: nearest integer as long. */
extern long lround(double x);
/* llround: nearest integer as long long. */
extern long long llround(double x);
