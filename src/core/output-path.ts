/** Where a caller says the destination of what a capability writes: the value at this key, however deep it stands. */
export const outputPathKey = 'output_path';
