// Which lockfile the dependencies were installed from. Uses Node's built-ins only.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const marker = 'node_modules/.capstan-lock';

function readDigest() {
  return createHash('sha256').update(readFileSync('package-lock.json')).digest('hex');
}

export function isInstalled() {
  return existsSync(marker) && readFileSync(marker, 'utf8') === readDigest();
}

export function markInstalled() {
  mkdirSync('node_modules', { recursive: true });
  writeFileSync(marker, readDigest());
}
