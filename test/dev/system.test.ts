import { expect, test } from 'vitest';
import { findUnfit, readSystem } from '../../src/dev/system.ts';

test.each([
  ['win32', 'x64', null, /WSL 2/],
  ['linux', 'x64', null, /musl/],
  ['linux', 'ia32', '2.36', /ia32/],
  ['freebsd', 'x64', null, /freebsd/],
] as const)(
  'a stack on %s with %s and glibc %s is refused with a remedy',
  (platform, arch, glibc, reason) => {
    expect(findUnfit({ platform, arch, glibc })).toMatch(reason);
  },
);

test('a stack starts on Linux with glibc, on macOS, and here', () => {
  const fit = [
    { platform: 'linux', arch: 'arm64', glibc: '2.36' },
    { platform: 'darwin', arch: 'arm64', glibc: null },
    readSystem(),
  ] as const;
  expect(fit.map(findUnfit)).toEqual([null, null, null]);
});
