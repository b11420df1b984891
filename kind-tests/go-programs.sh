# Builds programs from their Go modules once per version and keeps them in the user's cache. Read by the `build` scripts of
# the folders that hold such modules; not a program itself.
#
# Such a script says what it is about in `what`, which programs it makes in `programs`, how long that takes in `patience`,
# and where in the cache they are kept in `cache`. It defines `build` out of calls of `compile`, and then calls
# `provide KEY FILE...`: the key names the versions, the files are all that the outcome depends on beside Go itself.
# `provide` prints the folder that holds the programs, alone, on standard output; progress goes to standard error. A fresh
# clone finds what another one has built. With everything in the cache this needs no Go and takes a few milliseconds.

say() { printf '%s: %s\n' "$what" "$*" >&2; }
die() { say "$*"; exit 1; }

# version FOLDER MODULE: the version that this folder's go.mod requires.
version() { awk -v module="$2" '$1 == "require" { $1 = ""; $0 = $0 } $1 == module { print $2; exit }' "$1/go.mod"; }

# complete: whether the folder holds every program.
complete() {
	for program in $programs; do [ -x "$folder/$program" ] || return 1; done
}

# compile FOLDER NAME PACKAGE LDFLAGS
compile() {
	say "building $2 ..."
	begin=$(date +%s)
	# Without the lock: a compiler that outlives this script must not hold it.
	(cd "$1" && go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w $4" -o "$work/$2" "$3") 9>&- ||
		die "building $2 failed, see above."
	say "built $2 in $(($(date +%s) - begin)) s"
}

# One build at a time, to save work: nothing depends on it, because each builds in a folder of its own and renames that.
# The kernel gives a flock back however its holder ends. Where there is no flock, a symbolic link is the lock: it comes into
# being in one step together with its owner's process id, so that the lock of a dead owner is known as such.
take_lock() {
	if command -v flock >/dev/null; then
		exec 9>"$folder.lock"
		flock -n 9 || { say "waiting for another build ($folder.lock)"; flock 9; }
		return
	fi
	owned=$folder.lock.owner
	unlock() { if [ "$(readlink "$owned")" = $$ ]; then rm -f "$owned"; fi; }
	waited=
	until ln -s $$ "$owned" 2>/dev/null; do
		owner=$(readlink "$owned" || true)
		if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
			# Renaming picks one taker among several that wait. What was taken from one who lives is given back.
			mv "$owned" "$work.lock" 2>/dev/null || continue
			taken=$(readlink "$work.lock")
			rm -f "$work.lock"
			[ "$taken" = "$owner" ] || ln -s "$taken" "$owned" 2>/dev/null || true
			continue
		fi
		[ -n "$waited" ] || { say "waiting for another build (process ${owner:-unknown}, $owned)"; waited=1; }
		sleep 1
	done
}

# provide KEY FILE...
provide() {
	key=$1
	shift
	root=${XDG_CACHE_HOME:-$HOME/.cache}/dependency-watchdog/$cache
	folder=$root/$key-$(cat "$@" | cksum | cut -d' ' -f1)
	if complete; then echo "$folder"; exit 0; fi

	command -v go >/dev/null || die "Go 1.26 or newer is needed to build $programs for the tests, and there is no go command here."
	# From /, so that no go.mod has a say in which toolchain answers.
	have=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
	echo "$have" | awk -F'[go.]+' '{ exit !($2 > 1 || ($2 == 1 && $3 + 0 >= 26)) }' ||
		die "Go 1.26 or newer is needed to build $programs for the tests; this is $have."

	mkdir -p "$root"
	work=$root/build.$$
	unlock() { :; }
	trap 'rm -rf "$work"; unlock' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	take_lock
	if complete; then echo "$folder"; exit 0; fi

	export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off
	mkdir -p "$work"
	say "the first build takes $patience on two cores; its result stays in $folder"
	build
	if ! complete; then
		rm -rf "$folder"
		mv "$work" "$folder"
	fi
	echo "$folder"
}
