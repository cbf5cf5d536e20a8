// What an image needs of node_modules. Temporal's library has a build of 30 MB for each platform: this keeps only the
// build for this machine. Links to the packages of the workspace go, because dist/ contains what is used of them.
import { readdirSync, rmSync } from 'node:fs';

const folder = 'node_modules/@temporalio/core-bridge/releases';
const machine = { x64: 'x86_64', arm64: 'aarch64' }[process.arch];
const builds = readdirSync(folder);
const own = builds.filter((name) => name.startsWith(`${machine}-`) && name.includes('linux'));
if (own.length === 0)
  throw new Error(`${folder} has no build for Linux on ${process.arch}: ${builds.join(', ')}`);
rmSync('node_modules/@capstan', { recursive: true, force: true });
for (const name of builds) if (!own.includes(name)) rmSync(`${folder}/${name}`, { recursive: true });
