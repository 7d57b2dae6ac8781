"""Translates modules to C with mypyc: a batch of those that `compile.py` has to make, in a process of its own.

mypyc alone would hold all modules at once, and make C files of which each changes with every module. So what it knows
of a module (its types, and its functions without their bodies) is kept on disk, where the next batch finds it, as it is
when mypyc compiles separately. Unlike then, all modules become one library, whose functions call each other directly.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from mypy.build import BuildSource, build, sorted_components
from mypy.errors import CompileError
from mypy.fscache import FileSystemCache
from mypy.nodes import TypeInfo
from mypy.plugin import Plugin, ReportConfigContext
from mypy.version import __version__
from mypyc.analysis.attrdefined import detect_undefined_bitmap
from mypyc.build import get_cflags, get_mypy_config, include_dir
from mypyc.codegen.emit import Emitter
from mypyc.codegen.emitmodule import GroupGenerator, compile_scc_to_ir
from mypyc.common import RUNTIME_C_FILES, module_lock_api_name
from mypyc.errors import Errors
from mypyc.ir.class_ir import ClassIR
from mypyc.ir.module_ir import ModuleIR, deserialize_modules
from mypyc.ir.ops import DeserMaps
from mypyc.irbuild.mapper import Mapper
from mypyc.irbuild.prepare import load_type_map
from mypyc.namegen import NameGenerator, exported_name
from mypyc.options import CompilerOptions

_OF_A_MODULE: Final = re.compile(r"\b(CPyStatics|CPyLit_\w+|CPyGlobalsInit)\b")
"""Names that each module has. (`CPyStatics_Initialize` is another.)"""
_SHARED: Final = re.compile(r"^( *(?:CPyImportState \w+|CPyModuleLockAPI \*\w+)) = (?:\{0\}|NULL);$", re.MULTILINE)
"""Variables that several modules define: without a value, the linker makes one of them (-fcommon)."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


class Sources(Plugin):
    """Has mypy check again what was made of other sources: those of a module, and of all that it imports.

    mypy alone looks at the types of what is imported. But the order of methods, and which attributes are always there,
    are also in the C of modules that use them.
    """

    digests: dict[str, str]
    records: Path

    def report_config_data(self, ctx: ReportConfigContext) -> str | None:
        digest = self.digests.get(ctx.id)
        if digest is None or (ctx.is_check and not (self.records / digest).exists()):
            return None
        return digest


class Classes(dict[TypeInfo, ClassIR]):
    """mypyc's classes. Only a final one has no subclasses: others may get some in a later batch."""

    def __setitem__(self, info: TypeInfo, made: ClassIR) -> None:
        if not made.is_final_class:
            made.children = None
        super().__setitem__(info, made)


class Translation:
    """mypyc, set up to translate some of the modules of a library."""

    def __init__(self, cache: Path, library: str, options: list[str], compiled: list[str]) -> None:
        """``compiled`` are the paths of all modules of the library, below the current directory."""
        self.cache = cache
        self._library = library
        self.compiler = CompilerOptions(separate=True)
        self.compiler.global_opts = True  # `Classes` says where they are right
        self.files = FileSystemCache()
        arguments = [*options, f"--cache-dir={cache / 'mypy'}", *compiled]
        sources, _, self.options = get_mypy_config(arguments, None, self.compiler, self.files)
        self.paths = {source.module: str(source.path) for source in sources}
        for name in self.paths:  # else mypy does not look at all of a module that it was not asked for
            self.options.per_module_options[name]["follow_imports"] = "normal"
        self.mapper = Mapper(dict.fromkeys(self.paths, library))
        self.mapper.type_to_ir = Classes()
        self.names = NameGenerator([[name] for name in self.paths], separate=True)

    def generator(self, modules: dict[str, ModuleIR]) -> GroupGenerator:
        together = CompilerOptions(include_runtime_files=False)
        return GroupGenerator(modules, self.paths, self._library, self.mapper.group_map, self.names, together)

    def translate(self, wanted: dict[str, str], digests: dict[str, str]) -> None:
        """Record the C of modules, given with their paths, and of what they import, under their digests."""
        checked = Sources(self.options)
        records = self.cache / "translated"
        checked.digests, checked.records = digests, records
        for name in digests.keys() - self.paths.keys():
            self.options.per_module_options[name] = {"ignore_errors": True}
        sources = [BuildSource(path, name) for name, path in wanted.items()]
        result = build(sources, self.options, fscache=self.files, extra_plugins=[checked])
        if result.errors:
            raise CompileError(result.errors)
        result.manager.errors.set_file("<mypyc>", module=None, scope=None, options=self.options)
        errors = Errors(self.options)
        known = DeserMaps({}, {})
        for component in sorted_components(result.graph):
            trees = [
                state.tree
                for state in map(result.graph.__getitem__, sorted(component.mod_ids))
                if state.id in self.paths and state.tree
            ]
            if not trees:
                continue
            if component.mod_ids.isdisjoint(result.manager.rechecked_modules):
                kept = {tree.fullname: read(records / digests[tree.fullname])[-1] for tree in trees}
                for module in deserialize_modules(kept, known).values():
                    for one in module.classes:
                        detect_undefined_bitmap(one, set())  # which mypyc forgets to keep
                load_type_map(self.mapper, trees, known)
                continue
            made = compile_scc_to_ir(trees, result, self.mapper, self.compiler, errors)
            if errors.num_errors:
                raise CompileError(errors.new_messages())
            for module in made.values():
                known.classes.update((one.fullname, one) for one in module.classes)
                known.functions.update((one.decl.id, one) for one in module.functions)
                self._record(module, digests[module.fullname])
        result.manager.metastore.close()
        for name in wanted.keys() - self.paths.keys():
            (records / digests[name]).touch()

    def _record(self, module: ModuleIR, digest: str) -> None:
        name = exported_name(module.fullname)
        code, *headers = (text for _, text in self.generator({module.fullname: module}).generate_c_for_modules())
        code, end, _ = code.partition(f"static int exec_{self._library}__mypyc(")
        assert end
        code = re.sub(r'^ *#include "__native_.*\n', "", code, flags=re.MULTILINE)
        code = _SHARED.sub(r"\1;", _OF_A_MODULE.sub(rf"\1_{name}", code))
        declared = _OF_A_MODULE.sub(rf"\1_{name}", "".join(reversed(headers)))
        record = [name, declared, code, sorted(set(_WORD.findall(code))), module.serialize()]
        path = self.cache / "translated" / f"{digest}.new"
        path.write_bytes(zlib.compress(json.dumps(record).encode(), 1))
        path.replace(path.with_suffix(""))

    def library(self) -> str:
        """The C of what the modules share: it begins them, once it has made their literals."""
        modules: Any = dict.fromkeys(self.paths)
        generator = self.generator(modules)
        emitter = Emitter(generator.context)
        generator.generate_shared_lib_init(emitter)
        begin = [f"CPyGlobalsInit_{exported_name(name)}" for name in self.paths]
        return "\n".join([
            "#include <Python.h>",
            "#include <CPy.h>",
            f"CPyModuleLockAPI *{module_lock_api_name(self._library)};",
            *(f"extern int {name}(void);" for name in begin),
            f"static int CPyGlobalsInit(void) {{ return {' || '.join(f'{name}() < 0' for name in begin)} ? -1 : 0; }}",
            "".join(emitter.fragments),
        ])  # fmt: skip


def read(path: Path) -> Any:
    """What was recorded of a module."""
    return json.loads(zlib.decompress(path.read_bytes()))


def main() -> None:
    """``translate.py JSON``: translate what is wanted. If that is nothing, print how C files become a library."""
    asked = json.loads(sys.argv[1])
    translation = Translation(Path(asked["cache"]), asked["library"], asked["options"], asked["compiled"])
    if asked["wanted"]:
        try:
            translation.translate(asked["wanted"], asked["digests"])
        except CompileError as error:
            print("\n".join(error.messages))
            sys.exit(1)
        return
    setuptools: Any = import_module("mypyc.build")  # which knows where they are
    compiler = setuptools.ccompiler.new_compiler()
    setuptools.sysconfig.customize_compiler(compiler)
    flags = get_cflags(opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"), debug_level="0", multi_file=True)
    plan = {
        "version": __version__,
        "compiler": [*compiler.compiler_so, *flags, "-fcommon"],
        "linker": compiler.linker_so,
        "runtime": include_dir(),
        "always": RUNTIME_C_FILES,
        "library": translation.library(),
    }
    print(json.dumps(plan))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # to free all that was translated takes as long as to translate it
