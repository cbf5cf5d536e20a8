/**
 * The version of what the workflows do. A run keeps the one that it was started with, so it is raised when what they
 * ask of Temporal changes, and the older way stays behind a gate until the last run of it has ended: docs/engine-versions.md.
 */
export const engineVersion = 1;
