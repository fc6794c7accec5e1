# A guest in 512 bytes that does what a kernel does first: real mode, protected mode, page tables, long mode,
# 100 million instructions there, an exception through the interrupt table. It prints a letter per step to
# port 0xe9 (QEMU's debugcon) and ends QEMU through port 0xf4 (isa-debug-exit) with status 42 * 2 + 1.
# The work matters: a KVM that interprets the guest's kernel mode gets through all the steps, at a
# hundred-thousandth of the speed. tests/unit/machine/test_host_kvm.py holds bootsector.py to this file:
#   as -o x.o bootsector.S && ld -m elf_x86_64 -Ttext 0x7c00 --oformat binary -o x.bin x.o
.set DEBUGCON, 0xe9
.code16
.globl _start
_start:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7000, %sp
    movb $'R', %al
    outb %al, $DEBUGCON
    lgdt gdt_pointer
    movl %cr0, %eax
    orb $1, %al                     # CR0.PE
    movl %eax, %cr0
    ljmpl $0x08, $protected_mode

.code32
protected_mode:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movb $'P', %al
    outb %al, $DEBUGCON
    movl $0x1000, %edi              # three zeroed tables at 0x1000, 0x2000, 0x3000
    xorl %eax, %eax
    movl $0xc00, %ecx
    rep stosl
    movl $0x2003, 0x1000            # level 4 -> level 3
    movl $0x3003, 0x2000            # level 3 -> level 2
    movl $0x0083, 0x3000            # the first 2 MiB, one large page
    movl %cr4, %eax
    orl $0x20, %eax                 # CR4.PAE
    movl %eax, %cr4
    movl $0x1000, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER
    rdmsr
    orl $0x100, %eax                # EFER.LME
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax           # CR0.PG
    movl %eax, %cr0
    ljmpl $0x18, $long_mode

.code64
long_mode:
    movl $50000000, %ecx
1:  decl %ecx
    jnz 1b
    movb $'L', %al
    outb %al, $DEBUGCON
    movq $0x5000, %rdi              # an empty interrupt table at 0x5000
    xorl %eax, %eax
    movl $0x400, %ecx
    rep stosl
    movl $(0x180000 + 0x7c00 + on_invalid_opcode - _start), 0x5060
    movl $0x8e00, 0x5064            # vector 6: present, 64-bit interrupt gate
    lidt idt_pointer
    ud2

on_invalid_opcode:
    movb $'X', %al
    outb %al, $DEBUGCON
    movb $42, %al
    movw $0xf4, %dx
    outb %al, %dx
    hlt

.balign 8
gdt:
    .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff, 0x00af9a000000ffff
gdt_pointer:
    .word 31
    .long gdt
idt_pointer:
    .word 0x0fff
    .quad 0x5000
.org 510
    .word 0xaa55
