// Nothing: the precompiled header of the tests belongs to the target that has this source.
