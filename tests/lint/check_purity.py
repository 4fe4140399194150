#!/usr/bin/env python3
"""Reads the undefined symbols of each pure folder's library: a core that asks for a socket, file, clock, environment variable,
random device or thread is not pure, however it came by the call (inline code of a header included)."""

import argparse
import pathlib
import re
import subprocess

import check_layers
import tree

# C functions, matched whole; glibc's fortified twins (__x_chk) and 64-bit twins (x64) count as the function they stand for.
BANNED_FUNCTIONS = set("""
    socket bind listen accept accept4 connect send sendto sendmsg recv recvfrom recvmsg poll ppoll select epoll_create1 epoll_wait
    getaddrinfo gethostbyname pipe pipe2 eventfd timerfd_create
    open openat creat close read write pread pwrite fopen freopen fdopen fclose fread fwrite fgets fputs fputc putc putchar puts
    printf fprintf vprintf vfprintf scanf fscanf perror fflush getc getchar remove rename unlink mkdir opendir stat fstat lstat mmap
    stdin stdout stderr syslog
    time clock clock_gettime gettimeofday localtime localtime_r gmtime mktime timespec_get
    sleep usleep nanosleep clock_nanosleep alarm setitimer
    getenv secure_getenv setenv putenv system popen fork vfork execve posix_spawn kill raise signal sigaction
    rand rand_r srand random srandom drand48 getrandom getentropy arc4random
    pthread_create pthread_mutex_lock pthread_cond_wait pthread_cond_timedwait pthread_rwlock_wrlock pthread_rwlock_rdlock
    exit _exit quick_exit abort dlopen
    RAND_bytes RAND_priv_bytes BIO_new_file BIO_new_socket SSL_new SSL_CTX_new
""".split())

# C++ symbols, matched anywhere in the demangled name.
BANNED_NAMES = [re.compile(pattern) for pattern in (
    r"_clock::now\(\)", r"std::random_device", r"std::thread\b", r"std::condition_variable", r"std::cout\b", r"std::cerr\b",
    r"std::clog\b", r"std::cin\b", r"std::basic_[io]?fstream", r"std::basic_filebuf", r"std::ios_base::Init", r"std::filesystem",
    r"std::this_thread", r"std::__atomic_futex", r"boost::asio::detail::(socket_ops|epoll_reactor|posix_thread)",
    r"simdjson::padded_string::load")]

# CHECK prints the broken condition and ends the process: that is its whole purpose, and only it may.
ALLOWED = {"protocol/base": {"fprintf", "stderr", "abort"}}


def banned(symbol, folder):
    name = re.sub(r"^__(\w+)_chk$", r"\1", symbol)
    name = re.sub(r"^__isoc99_", "", name)
    name = re.sub(r"^(\w+)64$", r"\1", name)
    if name in ALLOWED.get(folder, ()):
        return False
    return name in BANNED_FUNCTIONS or any(pattern.search(symbol) for pattern in BANNED_NAMES)


def check_library(library, folder):
    listing = subprocess.run(["nm", "-uC", str(library)], check=True, capture_output=True, text=True).stdout
    problems = []
    member = ""
    for line in listing.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        match = re.match(r"\s+[UwvV] (.*)$", line)
        if match and banned(match.group(1), folder):
            problems.append(f"{folder}: {member} calls {match.group(1)}")
    return problems


def check(root, build, layers):
    problems = []
    checked = []
    names = tree.files(root, ".cc")
    for folder, layer in layers.items():
        # A tool's main is linked from its own object, never put into the library.
        sources = [name for name in names
                   if check_layers.folder_of(name, layers) == folder and not name.endswith("main.cc")]
        if not layer.pure or not sources:
            continue
        library = pathlib.Path(build) / folder / f"lib{re.sub('[/-]', '_', folder)}.a"
        if not library.exists():
            problems.append(f"{folder} has sources but {library} was not built: add_component({folder} ...) and build first")
            continue
        problems += check_library(library, folder)
        checked.append(folder)
    return problems, checked


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", required=True)
    parser.add_argument("--layers", default=str(pathlib.Path(__file__).with_name("layers.txt")))
    arguments = parser.parse_args()
    problems, checked = check(arguments.root, arguments.build, check_layers.load_layers(arguments.layers))
    tree.finish(problems, "pure: " + ", ".join(checked))


if __name__ == "__main__":
    main()
