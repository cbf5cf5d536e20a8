import type { GoProgram } from './ensure-program.ts';

/** The S3 server of tests and of the cluster on one machine. */
export const versitygw = {
  module: 'github.com/versity/versitygw/cmd/versitygw',
  version: '1.8.0',
  name: 'versitygw',
} as const satisfies GoProgram;
