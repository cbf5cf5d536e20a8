/** Light or dark: the user's choice, otherwise the system's. */
const place = 'capstan.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

export type ThemeChoice = 'system' | 'light' | 'dark';

export function readTheme(): ThemeChoice {
  const kept = localStorage.getItem(place);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

function isDark(): boolean {
  const choice = readTheme();
  return choice === 'system' ? dark.matches : choice === 'dark';
}

function apply(): void {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
}

export function chooseTheme(choice: ThemeChoice): void {
  if (choice === 'system') localStorage.removeItem(place);
  else localStorage.setItem(place, choice);
  apply();
}

export function followTheme(): void {
  apply();
  dark.addEventListener('change', apply);
}
