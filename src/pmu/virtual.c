// SPDX-License-Identifier: BSD-2-Clause
/*
 * Is this a virtual machine? Its hardware counters are then its host's to give. Each architecture
 * says it in a way of its own: x86 by a flag of the CPU, which hypervisors set; others by the device
 * tree, or the names that firmware gives the machine (SMBIOS, as the kernel shows them).
 */
#include "pmu/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the firmware of virtual machines calls itself; cloud hosts' own metal ends in ".metal". */
static const char *const names[] = {
	"Amazon EC2",
	"Apple Virtualization",
	"BHYVE",
	"Bochs",
	"Google Compute Engine",
	"KVM",
	"Microsoft Corporation",
	"QEMU",
	"OpenStack",
	"Parallels",
	"VMware",
	"VirtualBox",
	"innotek",
	"Xen",
};

static bool flag_of_cpu(const struct pmu_system *system)
{
	CLEANUP(free_pointer) char *line = NULL;
	char path[256];
	size_t capacity = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpuinfo", system->procfs);
	file = fopen(path, "re");
	if (!file)
		return false;
	/* The first CPU's: the file is as long as there are CPUs. */
	while (getline(&line, &capacity, file) > 0 && strncmp(line, "flags", 5))
		;
	found = line && !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
	fclose(file);
	return found;
}

static bool is_known(const char *text)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(text, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

/* Strings of the tree end in NUL; of several the first one is looked at. */
static bool device_tree(const struct pmu_system *system, char *who, size_t size)
{
	static const char tree[] = "firmware/devicetree/base";

	memset(who, 0, size);
	if (pmu_read_file(who, size - 1, "%s/%s/hypervisor/compatible", system->sysfs, tree) > 0)
		return true;
	memset(who, 0, size);
	return pmu_read_file(who, size - 1, "%s/%s/compatible", system->sysfs, tree) > 0 &&
	       (!strcmp(who, "linux,dummy-virt") || !strncmp(who, "qemu,", 5));
}

static bool firmware(const struct pmu_system *system, char *who, size_t size)
{
	static const char *const files[] = { "product_name", "sys_vendor", "bios_vendor" };
	char product[128] = "";
	size_t i;

	/* On their own metal, clouds' vendors are the same. */
	if (pmu_read_file(product, sizeof(product), "%s/class/dmi/id/product_name", system->sysfs) >
		    0 &&
	    strstr(product, ".metal"))
		return false;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (pmu_read_file(who, size, "%s/class/dmi/id/%s", system->sysfs, files[i]) <= 0 ||
		    !is_known(who))
			continue;
		/* It makes machines of both kinds. */
		if (strncmp(who, "Microsoft", 9) || !strcmp(product, "Virtual Machine"))
			return true;
	}
	return false;
}

bool pmu_is_virtual(const struct pmu_system *system, char *who, size_t size)
{
	system = pmu_system_or_this(system);
	if (device_tree(system, who, size) || firmware(system, who, size))
		return true;
	snprintf(who, size, "the CPU says so");
	if (flag_of_cpu(system))
		return true;
	if (pmu_read_file(who, size, "%s/hypervisor/type", system->sysfs) > 0)
		return true;
	*who = 0;
	return false;
}
