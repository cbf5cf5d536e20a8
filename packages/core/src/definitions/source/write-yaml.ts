/** JSON values as YAML that readers of versions 1.1 and 1.2 read alike: `on` and `1.10` are quoted. */
import { stringify } from 'yaml';
import type { Json } from '../../contracts/primitives.ts';

export function writeYaml(value: Json): string {
  return stringify(value, { compat: 'yaml-1.1', version: '1.2', lineWidth: 0, aliasDuplicateObjects: false });
}
