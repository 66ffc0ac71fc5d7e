# shellcheck shell=bash
# Sourced by scripts/sysroot-arm64 and tests/guest/*: the download cache and a private apt.
#
# Everything lives in $DUET_CACHE (~/.cache/duet). An entry is built in a temporary folder of the
# same file system and renamed into place, under a lock: a half-made entry is never seen, and two
# runs that want the same entry download it once.

CACHE=${DUET_CACHE:-${HOME:-/root}/.cache/duet}
PROGRAM=${PROGRAM:-${0##*/}}

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }

# die STATUS WHAT: WHY: HINT
die() {
	local status=$1
	shift
	say "$*"
	exit "$status"
}

need_tool() { # TOOL PACKAGE
	[[ -n $(type -P "$1") ]] || die 125 "$1: not installed: run scripts/setup check (package $2)"
}

# Runs COMMAND while holding the lock NAME. The subshell gives the lock back on every way out;
# the descriptor is closed for COMMAND's own children by nobody, so COMMAND must leave no daemon.
with_lock() { # NAME COMMAND...
	local name=$1
	shift
	mkdir -p "$CACHE"
	(
		exec 9>"$CACHE/.lock-$name"
		flock 9
		"$@"
	)
}

# A second apt state per architecture. The machine's own lists, foreign architectures and dpkg
# database stay untouched, and an empty dpkg database makes apt name every dependency.
apt_private() { # ARCH apt-get|apt-cache ARGS...
	local arch=$1 tool=$2 dir=$CACHE/apt/$1
	shift 2
	mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
	[[ -e $dir/state/status ]] || : >"$dir/state/status"
	"$tool" -q -o "Dir::State=$dir/state" -o "Dir::State::status=$dir/state/status" \
		-o "Dir::Cache=$dir/cache" -o "APT::Architecture=$arch" \
		-o "APT::Architectures::=$arch" -o APT::Sandbox::User=root "$@"
}

# Refreshes the private lists of ARCH. Called with a lock held.
apt_update() { # ARCH
	say "apt: reading the $1 package lists"
	apt_private "$1" apt-get update >"$CACHE/apt-$1.log" 2>&1 ||
		die 125 "apt-get update ($1): failed, see $CACHE/apt-$1.log: is the network there?"
}

# Downloads with the lists at hand; if a package has been superseded there, with fresh ones.
apt_fetch() { # ARCH COMMAND...
	local arch=$1
	shift
	compgen -G "$CACHE/apt/$arch/state/lists/*Packages*" >/dev/null || apt_update "$arch"
	"$@" && return 0
	apt_update "$arch"
	"$@"
}
