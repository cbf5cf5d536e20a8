import { type ReactElement, useState } from 'react';
import { Panel } from '../../shared/parts.tsx';
import { chooseTheme, readTheme, type ThemeChoice } from '../../shared/theme.ts';

const choices: readonly (readonly [ThemeChoice, string])[] = [
  ['system', 'as the system is'],
  ['light', 'light'],
  ['dark', 'dark'],
];

export function ThemeTab(): ReactElement {
  const [theme, setTheme] = useState(readTheme);
  const choose = (choice: ThemeChoice): void => {
    chooseTheme(choice);
    setTheme(choice);
  };
  return (
    <Panel title="Theme">
      <fieldset className="flex flex-col gap-2 text-sm">
        <legend className="sr-only">Theme</legend>
        {choices.map(([choice, words]) => (
          <label key={choice} className="flex items-center gap-2">
            <input type="radio" name="theme" checked={theme === choice} onChange={() => choose(choice)} />
            {words}
          </label>
        ))}
      </fieldset>
    </Panel>
  );
}
