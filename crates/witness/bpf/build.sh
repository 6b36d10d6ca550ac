#!/bin/sh
# Compiles the programs: build.sh DIRECTORY writes the objects there. Debugging information but the
# kernel's own (BTF, which locks in maps need) is left out, so that an object does not say where it was made.
set -eu
to=$(realpath "$1")
cd "$(dirname "$0")"
for name in dispatch witness; do
	${CLANG:-clang} -O2 -g -Wall -Wextra -Werror -target bpfel -mcpu=v3 -fdebug-compilation-dir=. \
		-c "$name.bpf.c" -o "$to/$name.bpf.o"
	${LLVM_STRIP:-llvm-strip} --strip-debug "$to/$name.bpf.o"
done
