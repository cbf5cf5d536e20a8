// Before packing: what was compiled from sources that are gone since must not be shipped.
import { rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
