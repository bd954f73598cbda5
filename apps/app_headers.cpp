// The target that compiles what the programs have in common: see CMakeLists.txt.
