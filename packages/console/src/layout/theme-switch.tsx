import { type ReactElement, useState } from 'react';
import { Icon } from '../shared/icon.tsx';
import { chooseTheme, readTheme, type ThemeChoice } from '../shared/theme.ts';

const next: Readonly<Record<ThemeChoice, ThemeChoice>> = { system: 'light', light: 'dark', dark: 'system' };
const icons = { system: 'monitor', light: 'sun', dark: 'moon' } as const;

export function ThemeSwitch(): ReactElement {
  const [theme, setTheme] = useState(readTheme);
  const change = (): void => {
    chooseTheme(next[theme]);
    setTheme(next[theme]);
  };
  return (
    <button
      type="button"
      onClick={change}
      aria-label={`Theme: ${theme}. Change to ${next[theme]}`}
      title={`Theme: ${theme}`}
      className="grid size-8 place-items-center rounded-md text-muted hover:bg-sunken hover:text-text"
    >
      <Icon name={icons[theme]} />
    </button>
  );
}
