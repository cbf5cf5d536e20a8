/**
 * A base image where no registry is in reach: a root of Debian made of the files of this machine's own packages, and
 * this Node with its npm. It stands in for `node:20-bookworm-slim`, to build and to run the Dockerfile for real.
 */
import { chmod, cp, mkdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runCommand } from '../package/run-command.ts';

/** What a slim image of Debian holds of what a shell, npm and Node use. */
const packages = [
  ...[
    'base-files',
    'bash',
    'coreutils',
    'dash',
    'debianutils',
    'findutils',
    'grep',
    'gzip',
    'hostname',
    'login',
  ],
  ...[
    'passwd',
    'sed',
    'tar',
    'tzdata',
    'libc6',
    'libc-bin',
    'libgcc-s1',
    'libstdc++6',
    'libtinfo6',
    'libselinux1',
  ],
  ...['libpcre2-8-0', 'libacl1', 'libattr1', 'libgmp10', 'zlib1g', 'ca-certificates', 'openssl', 'libssl3'],
];
const certificates = '/etc/ssl/certs/ca-certificates.crt';

/** @returns the existing files and links of the packages */
async function listFiles(root: string): Promise<string> {
  const command = `dpkg-query -L ${packages.join(' ')} | sort -u | while read -r f; do
    [ -L "$f" ] || [ -f "$f" ] && printf '%s\\n' "$f"; done; true`;
  const list = join(root, '..', 'files.txt');
  await writeFile(list, await runCommand(['/bin/sh', '-c', command], { cwd: '/' }));
  return list;
}

/** `/bin` and its like are links into `/usr`, as Debian has them. */
async function makeLinks(root: string): Promise<void> {
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true });
    await symlink(`usr/${name}`, join(root, name));
  }
  for (const name of ['tmp', 'var/tmp']) {
    await mkdir(join(root, name), { recursive: true });
    await chmod(join(root, name), 0o1777);
  }
  for (const name of ['etc', 'root', 'proc', 'sys', 'dev', 'usr/local/bin']) {
    await mkdir(join(root, name), { recursive: true });
  }
}

async function addNode(root: string): Promise<void> {
  const bin = join(root, 'usr/bin');
  await cp(await realpath(process.execPath), join(bin, 'node'));
  const npm = dirname(dirname(await realpath(await findNpm())));
  await cp(npm, join(root, 'usr/lib/node_modules/npm'), { recursive: true });
  for (const name of ['npm', 'npx']) {
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
  }
}

async function findNpm(): Promise<string> {
  return (await runCommand(['/bin/sh', '-c', 'command -v npm'], { cwd: '/' })).trim();
}

/** @param root a folder that is not there yet */
export async function makeBaseRoot(root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  await makeLinks(root);
  const list = await listFiles(root);
  const copy = `tar -C / --no-recursion -cf - -T '${list}' | tar -C '${root}' -xf - --keep-directory-symlink`;
  await runCommand(['/bin/sh', '-c', copy], { cwd: '/' });
  await addNode(root);
  await mkdir(dirname(join(root, certificates)), { recursive: true });
  await writeFile(join(root, certificates), await readFile(certificates));
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/bash\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\n');
  await writeFile(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  await runCommand(['/sbin/ldconfig', '-r', root], { cwd: '/' });
}
