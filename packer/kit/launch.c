// Starts a program of the node kit with the kit's own loader and libraries, wherever the kit lies.
//
// Every program in the kit's bin is a link to this one, HOME/libexec/launch: /proc/self/exe tells where HOME is, and
// AT_EXECFN (getauxval(3)) under which name it was started; where that is a script, its first line names the program,
// and the kernel makes that argument 0 (execve(2)). What is started then is the loader, under a link that has the
// program's name, so that ps, ss and pgrep show that (ld.so(8): --library-path, --argv0).
//
// It uses no library, so that it runs on every Linux of this architecture. Where they are given: VARIABLE and FOLDER, a
// variable of the environment that is set to a folder of the kit; ARGUMENTS, what goes before the program's own; PREFIX, what the
// file's name in libexec begins with, where another program of the kit has that name too.

#define STDERR 2
#define SYS_WRITE 1
#define SYS_STAT 4
#define SYS_EXECVE 59
#define SYS_EXIT 60
#define SYS_READLINK 89
#define AT_EXECFN 31
#define PATH_MAX 4096

#ifndef PREFIX
#define PREFIX ""
#endif

typedef unsigned long word;

static long call(long number, word first, word second, word third) {
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return answer;
}

static word length(const char *text) {
    word count = 0;
    while (text[count]) count++;
    return count;
}

static void end(const char *why, const char *what) {
    static const char name[] = "overlaylab kit: ";
    call(SYS_WRITE, STDERR, (word)name, sizeof name - 1);
    call(SYS_WRITE, STDERR, (word)why, length(why));
    call(SYS_WRITE, STDERR, (word)what, length(what));
    call(SYS_WRITE, STDERR, (word)"\n", 1);
    call(SYS_EXIT, 127, 0, 0);
}

// Space for all texts that are made here; nothing is ever given back.
static char room[8 * PATH_MAX];
static word used;

static char *joined(const char *first, const char *second, const char *third) {
    const char *parts[3] = {first, second, third};
    char *made = room + used;
    int i;
    for (i = 0; i < 3; i++) {
        const char *part = parts[i];
        for (; *part; part++) {
            if (used > sizeof room - 2) end("too long a path: ", first);
            room[used++] = *part;
        }
    }
    room[used++] = 0;
    return made;
}

static const char *last_part(const char *path) {
    const char *last = path;
    for (; *path; path++)
        if (*path == '/') last = path + 1;
    return last;
}

// Whether both paths lead to the same file: device and inode are the first two words of what stat(2) gives.
static int are_one(const char *one, const char *other) {
    word first[32], second[32];
    return !call(SYS_STAT, (word)one, (word)first, 0) && !call(SYS_STAT, (word)other, (word)second, 0) &&
           first[0] == second[0] && first[1] == second[1];
}

// Cuts the last part off, with its slash.
static void to_parent(char *path) {
    word count = length(path);
    while (count && path[count - 1] != '/') count--;
    path[count ? count - 1 : 0] = 0;
}

#ifdef VARIABLE
static int is_ours(const char *text) {
    word i;
    for (i = 0; VARIABLE[i]; i++)
        if (text[i] != VARIABLE[i]) return 0;
    return text[i] == '=';
}
#endif

// The stack as the kernel leaves it: the number of arguments, they, 0, the environment, 0, pairs of the auxiliary vector.
void begin(word *stack) {
    static char home[PATH_MAX];
    word count = stack[0], variables = 0, i;
    char **arguments = (char **)(stack + 1);
    char **environment = arguments + count + 1;
    const char *self = "", *name;
    word *auxiliary;
    long size;

    while (environment[variables]) variables++;
    for (auxiliary = (word *)(environment + variables + 1); auxiliary[0]; auxiliary += 2)
        if (auxiliary[0] == AT_EXECFN) self = (const char *)auxiliary[1];
    name = joined(PREFIX, last_part(!count || are_one(self, "/proc/self/exe") ? self : arguments[0]), "");
    size = call(SYS_READLINK, (word)"/proc/self/exe", (word)home, sizeof home - 1);
    if (size <= 0) end("needs /proc for ", name);
    home[size] = 0;
    to_parent(home);
    to_parent(home);

    // On the stack, which takes as many arguments as the kernel does.
#ifdef ARGUMENTS
    static char *const more[] = {ARGUMENTS};
    word mores = sizeof more / sizeof *more;
#else
    char *const *more = 0;
    word mores = 0;
#endif
    char *words[count + mores + 8];
    char *changed[variables + 2];
    words[0] = count ? arguments[0] : (char *)name;
    words[1] = "--inhibit-cache";
    words[2] = "--library-path";
    words[3] = joined(home, "/lib", "");
    words[4] = "--argv0";
    words[5] = words[0];
    words[6] = joined(home, "/libexec/", name);
    for (i = 0; i < mores; i++) words[7 + i] = more[i];
    for (i = 1; i < count; i++) words[6 + mores + i] = arguments[i];
    words[6 + mores + (count ? count : 1)] = 0;

    for (i = 0; i <= variables; i++) changed[i] = environment[i];
#ifdef VARIABLE
    for (i = 0; i < variables && !is_ours(environment[i]); i++) {}
    if (i == variables) changed[i + 1] = 0;
    changed[i] = joined(VARIABLE "=", home, "/" FOLDER);
#endif
    call(SYS_EXECVE, (word)joined(home, "/libexec/as/", name), (word)words, (word)changed);
    end("there is no ", words[6]);
}

__asm__(".globl _start\n"
        "_start:\n"
        "  xor %ebp, %ebp\n"
        "  mov %rsp, %rdi\n"
        "  and $-16, %rsp\n"
        "  call begin\n");
