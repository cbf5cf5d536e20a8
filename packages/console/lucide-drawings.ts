/** The drawings of lucide that the page names, compiled in: `virtual:lucide` holds them and no other. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Plugin } from 'vite';
import { iconNames } from './src/shared/icon-names.ts';

const id = 'virtual:lucide';

interface IconSet {
  readonly icons: Readonly<Record<string, { readonly body: string }>>;
}

export function lucideDrawings(): Plugin {
  return {
    name: 'lucide-drawings',
    resolveId: (source) => (source === id ? `\0${id}` : null),
    load: (source) => {
      if (source !== `\0${id}`) return null;
      const file = createRequire(import.meta.url).resolve('@iconify-json/lucide/icons.json');
      const { icons } = JSON.parse(readFileSync(file, 'utf8')) as IconSet;
      const bodies = iconNames.map((name) => {
        const icon = icons[name];
        if (icon === undefined) throw new Error(`lucide has no drawing "${name}"`);
        return [name, icon.body];
      });
      return `export const drawings = ${JSON.stringify(Object.fromEntries(bodies))};`;
    },
  };
}
