/* Many small files at once: looked at, written, or written over, in one call, while others use the interpreter.

   bulk.py does the same in Python, and is the one to read: where this could not be built, it is all there is. Whatever
   is not as expected is reported, and left to whoever asked. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifdef __APPLE__
#define MTIME st_mtimespec
#define CTIME st_ctimespec
#else
#define MTIME st_mtim
#define CTIME st_ctim
#endif

#define NS(t) ((unsigned long long)(t).tv_sec * 1000000000ULL + (unsigned long long)(t).tv_nsec)

/* What tells that a file was not touched, as in bulk.py. Times before 1970 or after 2262 go round: the same are the same. */
typedef struct {
    unsigned long long size, mtime, ctime, inode;
} Known;

static Known
known_of(const struct stat *found)
{
    Known known = {(unsigned long long)found->st_size, NS(found->MTIME), NS(found->CTIME), found->st_ino};
    return known;
}

static int
is_same(const Known *a, const Known *b)
{
    return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime && a->inode == b->inode;
}

/* A Stat from Python; 0 if it is none, with an error set. */
static int
take_known(PyObject *tuple, Known *known)
{
    if (tuple == NULL)
        return 0;
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "a stat is a tuple");
        return 0;
    }
    return PyArg_ParseTuple(tuple, "KKKK:stat", &known->size, &known->mtime, &known->ctime, &known->inode);
}

/* A path as the system takes it, without a zero in it; NULL with an error set. Of anything but text Python would have to
   be asked, and what is at hand might change meanwhile. */
static PyObject *
as_path(PyObject *path, const char **text)
{
    PyObject *bytes = NULL;
    if (path == NULL)
        return NULL;
    if (!PyUnicode_Check(path)) {
        PyErr_SetString(PyExc_TypeError, "a path is text");
        return NULL;
    }
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    *text = PyBytes_AsString(bytes);
    return bytes;
}

/* Looking. */

#define FEW 8

typedef struct {
    PyObject *path;
    const char *text;
    Known known;
    int differs;
} Look;

/* Whether something else stands at a path: below an open folder, or in `room`, which holds the folder's path. */
static int
differs(int folder, char *room, size_t start, const Look *look)
{
    struct stat found;
    Known now;
    size_t length = strlen(look->text);
    if (start + length >= PATH_MAX)
        return 1;
    if (folder >= 0 && length && look->text[0] != '/') {
        if (fstatat(folder, look->text, &found, AT_SYMLINK_NOFOLLOW))
            return 1;
    } else {
        memcpy(room + start, look->text, length + 1);
        if (lstat(room, &found))
            return 1;
    }
    now = known_of(&found);
    return !is_same(&now, &look->known);
}

/* The folder in `room`, opened: many paths are found sooner from there. -1 where that is not so, or cannot be. */
static int
open_folder(char *room, size_t start, Py_ssize_t count)
{
#ifdef O_PATH
    if (count > FEW && start > 1 && start < PATH_MAX && room[start - 1] == '/') {
        room[start] = '\0';
        return open(room, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
#endif
    return -1;
}

PyDoc_STRVAR(changed_doc, "changed(prefix, paths, known): see changed_one_by_one in bulk.py.");

static PyObject *
changed(PyObject *module, PyObject *args)
{
    PyObject *given, *paths, *known, *prefix = NULL, *result = NULL;
    const char *folder;
    char room[PATH_MAX];
    size_t start;
    Look *looks;
    Py_ssize_t count, taken = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!:changed", &given, &PyList_Type, &paths, &PyList_Type, &known))
        return NULL;
    count = PyList_Size(paths);
    if (PyList_Size(known) != count) {
        PyErr_SetString(PyExc_ValueError, "each path has one stat");
        return NULL;
    }
    prefix = as_path(given, &folder);
    if (prefix == NULL)
        return NULL;
    start = strlen(folder);
    if (start < PATH_MAX)
        memcpy(room, folder, start);
    looks = PyMem_Calloc(count ? count : 1, sizeof(Look));
    if (looks == NULL) {
        Py_DECREF(prefix);
        return PyErr_NoMemory();
    }
    for (; taken < count; taken++) {
        Look *look = &looks[taken];
        if (!take_known(PyList_GetItem(known, taken), &look->known))
            goto done;
        look->path = as_path(PyList_GetItem(paths, taken), &look->text);
        if (look->path == NULL)
            goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    int top = open_folder(room, start, count);
    for (Py_ssize_t i = 0; i < count; i++)
        looks[i].differs = differs(top, room, start, &looks[i]);
    if (top >= 0)
        close(top);
    Py_END_ALLOW_THREADS
    result = PyList_New(0);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        if (looks[i].differs) {
            PyObject *number = PyLong_FromSsize_t(i);
            if (number == NULL || PyList_Append(result, number))
                Py_CLEAR(result);
            Py_XDECREF(number);
        }
    }
done:
    for (Py_ssize_t i = 0; i < taken; i++)
        Py_DECREF(looks[i].path);
    PyMem_Free(looks);
    Py_DECREF(prefix);
    return result;
}

PyDoc_STRVAR(is_clear_doc, "is_clear(folder, path): see is_clear_by_steps in bulk.py.");

static PyObject *
is_clear(PyObject *module, PyObject *args)
{
    PyObject *given_folder, *given_path, *folder, *path;
    const char *above, *below;
    struct stat found;
    int clear = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:is_clear", &given_folder, &given_path))
        return NULL;
    folder = as_path(given_folder, &above);
    if (folder == NULL)
        return NULL;
    path = as_path(given_path, &below);
    if (path != NULL) {
        Py_BEGIN_ALLOW_THREADS
        if (lstat(above, &found) == 0 && S_ISDIR(found.st_mode))
            clear = lstat(below, &found) != 0 && errno == ENOENT;
        Py_END_ALLOW_THREADS
        Py_DECREF(path);
    }
    Py_DECREF(folder);
    return path != NULL ? PyBool_FromLong(clear) : NULL;
}

/* Writing. */

typedef struct {
    PyObject *path, *temporary, *data;
    const char *target, *aside; /* aside: what the file is called until it takes the place of another */
    const char *bytes;
    Py_ssize_t size, same; /* same: with so many of its bytes a file begins that is written over */
    Known known; /* that other, if `expects` it, and then the file itself */
    unsigned long long marked;
    int mode, expects, error;
} Order;

#define OTHER (-1)
#define MOST (1 << 30) /* some systems take no more at once */

static int
put(int fd, const Order *order)
{
    Py_ssize_t done = 0;
    while (done < order->size) {
        Py_ssize_t left = order->size - done;
        ssize_t count = write(fd, order->bytes + done, (size_t)(left < MOST ? left : MOST));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : ENOSPC;
        done += count;
    }
    return 0;
}

/* Let two files change places, so that at any moment each path names one of them; 0 if that was done. */
static int
swap(const char *a, const char *b)
{
#if defined(__linux__) && defined(SYS_renameat2)
    return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2); /* RENAME_EXCHANGE, which not every libc names */
#else
    (void)a, (void)b;
    return -1;
#endif
}

/* Whether the file that came out of a change of places is the one that was looked at. The change may alter its ctime. */
static int
is_what_stood(const Order *order, const struct stat *found)
{
    struct stat was;
    if (lstat(order->aside, &was) || !S_ISREG(was.st_mode))
        return 0;
    return !order->expects || (was.st_ino == found->st_ino && was.st_size == found->st_size &&
                               NS(was.MTIME) == NS(found->MTIME));
}

/* Whether a path names the file that is open: what stands under a temporary name may have come out of a change of
   places, and is somebody's then. */
static int
is_own(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* Give somebody's file its place back. If yet another one was put there since, that is the one meant to stand. */
static void
give_back(const Order *order, int fd)
{
    if (swap(order->aside, order->target) == 0 && !is_own(fd, order->aside))
        swap(order->aside, order->target);
}

/* Put a file in the place of another, if that is what it has to be; an errno or OTHER if not.

   A rename over a file makes some file systems write the new bytes out first, which takes several times as long as all
   the rest. Where two files can change places, they do, and the other is deleted by the name that it got: then it is
   also known for sure which one it was. */
static int
take_place(const Order *order, int fd)
{
    struct stat found;
    int there = lstat(order->target, &found) == 0;
    if (order->expects) {
        Known now;
        if (!there)
            return errno;
        now = known_of(&found);
        if (!is_same(&now, &order->known))
            return OTHER;
    }
    if (there && S_ISREG(found.st_mode) && swap(order->aside, order->target) == 0) {
        if (is_what_stood(order, &found)) {
            unlink(order->aside); /* or it stays until the next run takes it away */
            return 0;
        }
        give_back(order, fd);
        if (order->expects || !is_own(fd, order->aside))
            return OTHER;
    }
    return rename(order->aside, order->target) ? errno : 0;
}

/* A new file, at a path from a folder that is open, or from anywhere if that is AT_FDCWD. */
static void
carry_out(Order *order, int folder, const char *path)
{
    struct timespec times[2];
    struct stat found;
    int fd, own;

    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[1] = times[0];
    order->marked = NS(times[0]);
    do
        fd = openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, order->mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        order->error = errno;
        return;
    }
    order->error = put(fd, order);
    if (!order->error && futimens(fd, times))
        order->error = errno;
    if (!order->error && order->aside != NULL)
        order->error = take_place(order, fd);
    if (!order->error && fstat(fd, &found))
        order->error = errno;
    own = order->aside == NULL || is_own(fd, order->aside);
    if (close(fd) && errno != EINTR && !order->error)
        order->error = errno; /* over a network, it is only now that there is no room */
    if (order->error && own)
        unlinkat(folder, path, 0); /* half of it would be taken for somebody's */
    else
        order->known = known_of(&found);
}

/* How long the path of the folder is that a new file belongs into; 0 where that is not to be opened for it. */
static size_t
folder_of(const Order *order)
{
    const char *slash = order->aside == NULL ? strrchr(order->target, '/') : NULL;
    return slash != NULL && strlen(order->target) < PATH_MAX ? (size_t)(slash - order->target) : 0;
}

/* Many new files, most of them side by side: from their folder, they are found sooner than from the top. */
static void
carry_out_all(Order *orders, Py_ssize_t count)
{
    char room[PATH_MAX];
    size_t length = 0, next = count ? folder_of(&orders[0]) : 0;
    int folder = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Order *order = &orders[i];
        size_t above = next;
        if (folder >= 0 && (above != length || memcmp(room, order->target, length))) {
            close(folder);
            folder = -1;
        }
        next = i + 1 < count ? folder_of(&orders[i + 1]) : 0;
#ifdef O_PATH
        if (folder < 0 && above && above == next && !memcmp(order->target, orders[i + 1].target, above)) {
            memcpy(room, order->target, length = above);
            room[length] = '\0';
            folder = open(room, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
#endif
        if (folder >= 0)
            carry_out(order, folder, order->target + length + 1);
        else
            carry_out(order, AT_FDCWD, order->aside != NULL ? order->aside : order->target);
    }
    if (folder >= 0)
        close(folder);
}

/* The path of an order, and what is to be there. */
static int
take_file(PyObject *path, PyObject *data, Order *order)
{
    char *bytes;
    if (PyBytes_AsStringAndSize(data, &bytes, &order->size))
        return 0;
    order->bytes = bytes;
    order->data = Py_NewRef(data);
    order->path = as_path(path, &order->target);
    return order->path != NULL;
}

static int
take_order(PyObject *given, Order *order)
{
    PyObject *path, *data, *temporary, *known;
    if (!PyArg_ParseTuple(given, "OSiOO:order", &path, &data, &order->mode, &temporary, &known))
        return 0;
    if (!take_file(path, data, order))
        return 0;
    if (temporary != Py_None) {
        order->temporary = as_path(temporary, &order->aside);
        if (order->temporary == NULL)
            return 0;
        order->expects = known != Py_None;
        if (order->expects && !take_known(known, &order->known))
            return 0;
    }
    return 1;
}

static PyObject *
answer_of(const Order *order)
{
    Known left = order->error ? (Known){0, 0, 0, 0} : order->known;
    return Py_BuildValue("(i(LLLK)L)", order->error, (long long)left.size, (long long)left.mtime,
                         (long long)left.ctime, left.inode, (long long)order->marked);
}

/* Have a list of orders carried out, and tell what became of each. */
static PyObject *
carry_all_out(PyObject *given, int (*take)(PyObject *, Order *), void (*carry)(Order *, Py_ssize_t),
              PyObject *(*answer)(const Order *))
{
    PyObject *result = NULL;
    Order *orders;
    Py_ssize_t count = PyList_Size(given), taken = 0;

    orders = PyMem_Calloc(count ? count : 1, sizeof(Order));
    if (orders == NULL)
        return PyErr_NoMemory();
    while (taken < count) {
        PyObject *one = PyList_GetItem(given, taken);
        if (one == NULL)
            goto done;
        if (!PyTuple_Check(one)) {
            PyErr_SetString(PyExc_TypeError, "an order is a tuple");
            goto done;
        }
        taken++;
        if (!take(one, &orders[taken - 1]))
            goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    carry(orders, count);
    Py_END_ALLOW_THREADS
    result = PyList_New(0);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        PyObject *one = answer(&orders[i]);
        if (one == NULL || PyList_Append(result, one))
            Py_CLEAR(result);
        Py_XDECREF(one);
    }
done:
    for (Py_ssize_t i = 0; i < taken; i++) {
        Py_XDECREF(orders[i].path);
        Py_XDECREF(orders[i].temporary);
        Py_XDECREF(orders[i].data);
    }
    PyMem_Free(orders);
    return result;
}

PyDoc_STRVAR(write_doc, "write(orders): see write_one_by_one in bulk.py.");

static PyObject *
write_files(PyObject *module, PyObject *args)
{
    PyObject *given;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!:write", &PyList_Type, &given))
        return NULL;
    return carry_all_out(given, take_order, carry_out_all, answer_of);
}

/* Writing over. */

/* Whether a file begins with these bytes. */
static int
begins_with(int fd, const char *bytes, Py_ssize_t size)
{
    char room[4096];
    Py_ssize_t done = 0;
    while (done < size) {
        Py_ssize_t left = size - done;
        ssize_t count = pread(fd, room, left < (Py_ssize_t)sizeof room ? (size_t)left : sizeof room, done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0 || memcmp(room, bytes + done, (size_t)count))
            return 0;
        done += count;
    }
    return 1;
}

static int
put_over(int fd, const Order *order)
{
    struct stat found;
    int error;
    if (fstat(fd, &found))
        return errno;
    if (!S_ISREG(found.st_mode) || found.st_nlink > 1 || !begins_with(fd, order->bytes, order->same))
        return OTHER;
    error = put(fd, order);
    if (!error && found.st_size > order->size && ftruncate(fd, order->size))
        error = errno;
    return error;
}

static void
carry_over(Order *order)
{
    int fd;
    do
        fd = open(order->target, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        order->error = errno;
        return;
    }
    order->error = put_over(fd, order);
    if (close(fd) && errno != EINTR && !order->error)
        order->error = errno;
}

static void
carry_over_all(Order *orders, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        carry_over(&orders[i]);
}

static int
take_over(PyObject *given, Order *order)
{
    PyObject *path, *data;
    if (!PyArg_ParseTuple(given, "OSn:order", &path, &data, &order->same) || !take_file(path, data, order))
        return 0;
    if (order->same >= 0 && order->same <= order->size)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a file begins with some of its bytes");
    return 0;
}

static PyObject *
error_of(const Order *order)
{
    return PyLong_FromLong(order->error);
}

PyDoc_STRVAR(write_over_doc, "write_over(orders): see write_over_one_by_one in bulk.py.");

static PyObject *
write_files_over(PyObject *module, PyObject *args)
{
    PyObject *given;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!:write_over", &PyList_Type, &given))
        return NULL;
    return carry_all_out(given, take_over, carry_over_all, error_of);
}

static PyMethodDef methods[] = {
    {"changed", changed, METH_VARARGS, changed_doc},
    {"is_clear", is_clear, METH_VARARGS, is_clear_doc},
    {"write", write_files, METH_VARARGS, write_doc},
    {"write_over", write_files_over, METH_VARARGS, write_over_doc},
    {NULL, NULL, 0, NULL},
};

static int
begin(PyObject *module)
{
    return PyModule_AddIntConstant(module, "VERSION", 3);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, begin},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_bulk", .m_doc = "Many small files at once.", .m_size = 0, .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__bulk(void)
{
    return PyModuleDef_Init(&definition);
}
