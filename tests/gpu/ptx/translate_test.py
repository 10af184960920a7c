"""Tests of translate.py: what it refuses, and what it says then."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

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


if __name__ == "__main__":
    unittest.main()
