"""Tests of translate.py and check_sass.py: what they refuse, and what they say then."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check_sass
import translate
from kernel_names import title
from ptx_module import read_module

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def kernel(*lines: str) -> str:
    body = "\n".join(lines)
    return f"{HEAD}.entry _Z1KPf(\n.param .u64 _Z1KPf_param_0\n)\n{{\n.reg .b32 %r<3>;\n{body}\nret;\n}}\n"


def translated(ptx: str, *options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "some.ptx", Path(folder) / "some.cc"
        source.write_text(ptx)
        arguments = ["translate.py", "--out", str(out), *options, str(source)]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(io.StringIO()):
            translate.main()
        return out.read_text()


class Translate(unittest.TestCase):
    def refuses(self, why: str, *lines: str) -> None:
        with self.assertRaises(SystemExit) as raised:
            translated(kernel(*lines))
        self.assertIn("some.ptx: line 9: ", str(raised.exception))
        self.assertIn(why, str(raised.exception))

    def test_what_it_does_not_know_is_an_error_with_the_instruction(self) -> None:
        self.refuses("unknown instruction: vabsdiff.s32 %r1, %r2, %r0", "vabsdiff.s32 %r1, %r2, %r0;")
        self.refuses("unknown instruction: add.sat.s32", "add.sat.s32 %r1, %r2, %r0;")
        self.refuses("unknown instruction: mul.rn.ftz.f32", "mul.rn.ftz.f32 %r1, %r2, %r0;")
        self.refuses("unknown instruction: bar.sync 1", "bar.sync 1;")
        self.refuses("unknown instruction: bar.warp.sync 255", "bar.warp.sync 255;")
        self.refuses("unknown operand", "mov.u32 %r1, %clock;")
        self.refuses("unknown operand", "ld.generic.u32 %r1, [%r2];")
        self.refuses("unknown operand", "ld.shared.u32 %r1, [somewhere];")
        self.refuses("unknown operand", "add.s32 %r1, %r7, 1;")
        self.refuses("unknown operand", "add.s32 %r1, %r2;")
        self.refuses("unknown statement", ".callprototype;")

    def test_instructions_are_counted_by_basic_block(self) -> None:
        code = translated(kernel("mov.u32 %r1, 2;", "$L_1:", "add.s32 %r1, %r1, -1;", "bra $L_1;"))
        self.assertIn("lane.instructions += 1;\n  r1 = As<uint32_t>(uint32_t{0x2});", code)
        self.assertIn("_L_1:\n  lane.instructions += 2;", code)
        self.assertIn("r1 = Bits(Add<int32_t>(As<int32_t>(r1), As<int32_t>(uint32_t{0xffffffff})));", code)

    def test_unwritten_predicates_have_either_value(self) -> None:
        code = translated(kernel(".reg .pred %p<3>;", "not.pred %p1, %p2;"))
        self.assertIn("bool p1 = (lane.thread.x + 1) % 2 != 0;", code)
        self.assertIn("bool p2 = (lane.thread.x + 2) % 2 != 0;", code)

    def test_kernels_without_barriers_can_be_left_out(self) -> None:
        self.assertNotIn("Kernel0", translated(kernel("mov.u32 %r1, 2;"), "--barriers-only"))
        self.assertIn("lane.SyncWarp(0);", translated(kernel("bar.warp.sync -1;"), "--barriers-only"))

    def test_a_barrier_knows_its_source_lines(self) -> None:
        ptx = kernel(
            ".loc 1 30 3", ".loc 2 12 5, function_name $L__info_string0, inlined_at 1 30 3", "bar.sync 0;"
        ) + '.file 1 "/root/gpu/a.cu"\n.file 2 "/root/gpu/b.h"\n'  # fmt: skip
        self.assertIn('"bar.sync", 11, "gpu/b.h:12 < gpu/a.cu:30"', translated(ptx, "--root", "/root"))

    def test_a_file_without_an_end_is_an_error(self) -> None:
        with self.assertRaisesRegex(Exception, "a statement without an end: mov"):
            read_module(HEAD + ".entry K()\n{\nmov.u32 %r1, 2", "")

    def test_titles(self) -> None:
        name = "17DeferredOpsKernelILNS_5DTypeE10ELNS_6LayoutE1ELNS0_6ExtentE2ELb0EEE"
        self.assertEqual(title(name), "DeferredOps.f16.NCHW.mixes.pixels")
        self.assertEqual(title("b012UnpackKernelINS1_8WarpTeamEEE"), "Unpack")


class CheckSass(unittest.TestCase):
    KERNEL = "_Z12UnpackKernelv"
    OTHER = "_Z13EntropyKernelv"
    COMPILING = "ptxas info    : Compiling entry function '{}' for 'sm_90'\n"
    STACK = "    {} bytes stack frame, {} bytes spill stores, 0 bytes spill loads\n"
    USED = "ptxas info    : Used 40 registers, used 1 barriers, 96 bytes smem\n"

    def log(self, *parts: str, kernel: str = KERNEL) -> str:
        return self.COMPILING.format(kernel) + "".join(parts)

    def test_registers(self) -> None:
        table: check_sass.Table = {}

        def errors(stack: int, stores: int) -> int:
            log = self.log(self.STACK.format(stack, stores), self.USED)
            return len(check_sass.check_registers(log, [self.KERNEL], table))

        self.assertEqual(errors(0, 0), 0)
        self.assertEqual(table, {"Unpack": (40, 96)})
        self.assertEqual(errors(8, 0), 1)
        self.assertEqual(errors(0, 4), 1)

    def test_a_log_without_some_kernel_is_an_error(self) -> None:
        sound = self.STACK.format(0, 0) + self.USED
        both = self.log(sound) + self.log(sound, kernel=self.OTHER)
        kernels = sorted((self.KERNEL, self.OTHER))
        table: check_sass.Table = {}
        self.assertEqual(check_sass.check_registers(both, kernels, table), [])
        self.assertEqual(sorted(table), ["Entropy", "Unpack"])
        for log, why in (
            ("", "ptxas's log has the kernels"),
            ("ptxas: 40 registers for each of 2 kernels\n", "ptxas's log has the kernels"),
            (self.log(sound), "ptxas's log has the kernels"),
            (both + self.log(sound), "ptxas's log has the kernels"),
            # What the first one lacks is not taken from the next one.
            (self.log(self.USED) + self.log(sound, kernel=self.OTHER), "does not say what Unpack has"),
            (self.log(sound) + self.log(self.STACK, kernel=self.OTHER), "does not say what Entropy has"),
        ):
            with self.subTest(log), self.assertRaisesRegex(SystemExit, why):
                check_sass.check_registers(log, kernels, {})

    def listing(self, *lines: str, kernel: str = KERNEL) -> str:
        return f".text.{kernel}:\n" + "".join(f"        /*0010*/       {line} ;\n" for line in lines)

    def test_instructions(self) -> None:
        def errors(kernel: str, code: str) -> int:
            return len(check_sass.check_instructions(self.listing(code, "EXIT", kernel=kernel), [kernel]))

        deferred = "17DeferredOpsKernelILNS_5DTypeE10ELNS_6LayoutE1ELNS0_6ExtentE2ELb0EEE"
        self.assertEqual(errors(self.KERNEL, "LDG.E R2, desc[UR10][R4.64]"), 0)
        self.assertEqual(errors(self.KERNEL, "@!P0 LD.E.64 R2, desc[UR10][R4.64]"), 1)
        self.assertEqual(errors(self.KERNEL, "ST.E desc[UR10][R4.64], R2"), 1)
        self.assertEqual(errors(self.KERNEL, "FFMA R1, R2, R3, R4"), 0)
        self.assertEqual(errors(deferred, "@P1 FFMA.FTZ R1, R2, R3, R4"), 1)
        self.assertEqual(errors(deferred, "FFMA R1, RZ, R3, R4"), 0)

    def test_a_listing_without_some_kernel_is_an_error(self) -> None:
        kernels = sorted((self.KERNEL, self.OTHER))
        sound = self.listing("EXIT") + self.listing("@P0 EXIT", kernel=self.OTHER)
        self.assertEqual(check_sass.check_instructions(sound, kernels), [])
        for listing, why in (
            ("", "nvdisasm's listing has the kernels"),
            (sound.replace(".text.", ".code."), "nvdisasm's listing has the kernels"),
            (self.listing("EXIT"), "nvdisasm's listing has the kernels"),
            (sound.replace("/*0010*/", "0010:"), "of [A-Z][a-z]+ has no EXIT"),
            (self.listing("EXIT") + self.listing("RET", kernel=self.OTHER), "of Entropy has no EXIT"),
        ):
            with self.subTest(listing), self.assertRaisesRegex(SystemExit, why):
                check_sass.check_instructions(listing, kernels)

    def test_kernels_of_ptx(self) -> None:
        self.assertEqual(check_sass.kernels_of(kernel() + kernel()), ["_Z1KPf", "_Z1KPf"])
        for ptx in (HEAD, kernel().replace("_Z1KPf(", "$K(")):
            with self.subTest(ptx), self.assertRaisesRegex(SystemExit, "kernels are known of"):
                check_sass.kernels_of(ptx)

    def test_comparison(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = Path(folder) / "sass.txt"
            path.write_text("# head\nnvcc 13.0.1\nUnpack 40 96\n")
            self.assertEqual(check_sass.compare({"Unpack": (40, 96)}, path, "13.0.1"), [])
            self.assertEqual(check_sass.compare({"Unpack": (39, 96)}, path, "13.0.1"), [])
            self.assertEqual(len(check_sass.compare({"Unpack": (41, 96)}, path, "13.0.1")), 1)
            self.assertEqual(len(check_sass.compare({"Unpack": (40, 97)}, path, "13.0.1")), 1)
            self.assertEqual(len(check_sass.compare({"Entropy": (1, 1)}, path, "13.0.1")), 1)
            self.assertEqual(len(check_sass.compare({"Unpack": (40, 96)}, path, "13.1.0")), 1)


if __name__ == "__main__":
    unittest.main()
