"""Classic protocols in the language, each in a folder of its own: `stagewright new NAME --from EXAMPLE` copies one."""
