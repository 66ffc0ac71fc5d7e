# shellcheck shell=bash
# Sourced by tests/guest/*: which guest kernels there are, and how they get into the cache.
#
# A cache entry ARCH-SERIES is a link to PACKAGE_VERSION_DEBARCH beside it, which holds
#   kernel        what QEMU boots (x86-64: the ELF vmlinux, whose PVH entry saves a second)
#   base.cpio.gz  busybox and the modules that the guest needs before it has its root
#   release       the kernel's release, for people
#   btf           its raw BTF, once tests/guest/btf has asked for it

# Bump the number when what an entry holds changes.
kernel_cache=$CACHE/kernel-2

guest_archs=(x86_64 arm64)
guest_kernels=(6.1 6.12)

# Debian's meta-package that always names the newest kernel of a series: add a kernel here.
kernel_meta() { # SERIES
	case $1 in
	6.1) echo linux-image-cloud ;;
	6.12) echo linux-image-6.12-cloud ;;
	*) die 125 "kernel $1: unknown: one of ${guest_kernels[*]}" ;;
	esac
}

debian_arch() { # ARCH
	case $1 in
	x86_64) echo amd64 ;;
	arm64) echo arm64 ;;
	*) die 125 "architecture $1: unknown: one of ${guest_archs[*]}" ;;
	esac
}

# In the order in which insmod takes them; one that a kernel has built in is passed over.
guest_modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci
	virtio_console fuse virtiofs overlay)

# The ELF inside a bzImage: the first compressed stream in it that unpacks to one.
extract_vmlinux() { # BZIMAGE OUT
	local magic tool offset
	while read -r magic tool; do
		while read -r offset; do
			tail -c "+$((offset + 1))" "$1" | $tool >"$2" 2>/dev/null || true
			[[ $(head -c 4 "$2" | tail -c 3) == ELF ]] && return 0
		done < <(LC_ALL=C grep -aobP "$magic" "$1" | LC_ALL=C cut -d: -f1)
	done <<-'END'
		\xfd7zXZ\x00 xz -dc
		\x28\xb5\x2f\xfd zstd -dc
		\x1f\x8b\x08 gzip -dc
		\x02\x21\x4c\x18 lz4 -dc
	END
	return 1
}

kernel_package() { # DEBARCH META: the versioned package behind the meta-package
	apt_private "$1" apt-cache show --no-all-versions "$2" 2>/dev/null |
		sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p' | head -n 1
}

kernel_download() { # DEBARCH META DIR
	local package
	package=$(kernel_package "$1" "$2")
	[[ -n $package ]] || return 1
	say "kernel: downloading $package"
	(cd "$3" && rm -f -- *.deb && apt_private "$1" apt-get download "$package" >download.log 2>&1)
}

busybox_of() { # ARCH: a statically linked busybox
	if [[ $1 == x86_64 ]]; then
		type -P busybox || die 125 "busybox: not installed: run scripts/setup check"
	else
		echo "$("$TREE/scripts/sysroot-arm64")/bin/busybox"
	fi
}

kernel_base() { # BUSYBOX MODULES_DIR WORKDIR OUT: the initramfs that all runs share
	local module file
	mkdir -p "$3/bin" "$3/modules"
	cp "$1" "$3/bin/busybox"
	for module in "${guest_modules[@]}"; do
		file=$(find "$2" \( -name "$module.ko" -o -name "$module.ko.xz" \) -print -quit)
		case $file in
		'') continue ;;
		*.xz) xz -dc "$file" >"$3/modules/$module.ko" ;;
		*) cp "$file" "$3/modules/$module.ko" ;;
		esac
		echo "$module" >>"$3/modules/order"
	done
	(cd "$3" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1n) >"$4"
}

kernel_build() { # ARCH SERIES, with the lock held
	local arch=$1 series=$2 debarch meta busybox work deb image name
	[[ -e $kernel_cache/$arch-$series/kernel ]] && return 0
	debarch=$(debian_arch "$arch")
	meta=$(kernel_meta "$series")-$debarch
	busybox=$(busybox_of "$arch")
	mkdir -p "$kernel_cache"
	work=$(mktemp -d "$kernel_cache/.new-XXXXXX")
	# shellcheck disable=SC2064 # the folder of now
	trap "rm -rf '$work'" EXIT
	with_lock "apt-$debarch" apt_fetch "$debarch" kernel_download "$debarch" "$meta" "$work" ||
		die 125 "$meta: download failed: $(tail -n 1 "$work/download.log" 2>/dev/null || echo not in the lists)"
	deb=$(echo "$work"/*.deb)
	mkdir "$work/deb" "$work/entry"
	dpkg-deb -x "$deb" "$work/deb"
	image=$(echo "$work"/deb/boot/vmlinuz-*)
	echo "${image##*/vmlinuz-}" >"$work/entry/release"
	if [[ $arch == x86_64 ]]; then
		extract_vmlinux "$image" "$work/entry/kernel" ||
			die 125 "${image##*/}: no ELF kernel found inside: unknown compression?"
	else
		cp "$image" "$work/entry/kernel"
	fi
	kernel_base "$busybox" "$work/deb" "$work/base" "$work/entry/base.cpio.gz"
	name=${deb##*/}
	name=${name%.deb}
	# One of the same name may have guests running from it.
	[[ -e $kernel_cache/$name ]] || mv "$work/entry" "$kernel_cache/$name"
	ln -sfn "$name" "$kernel_cache/$arch-$series"
	say "kernel: $arch $series is $(<"$kernel_cache/$name/release")"
}

# Sets KERNEL_DIR to the cache entry of a kernel, fetching it when it is not there.
kernel_entry() { # ARCH SERIES
	KERNEL_DIR=$kernel_cache/$1-$2
	[[ -e $KERNEL_DIR/kernel ]] && return 0
	need_tool cpio cpio
	need_tool xz xz-utils
	with_lock "kernel-$1-$2" kernel_build "$1" "$2"
}
