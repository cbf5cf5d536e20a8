import type { IconName } from '../shared/icon-names.ts';

/** The entries of the navigation, with their letter after `g`. */
export const places = [
  { to: '/', name: 'Home', icon: 'house', key: 'h' },
  { to: '/runs', name: 'Runs', icon: 'activity', key: 'r' },
  { to: '/reviews', name: 'Reviews', icon: 'inbox', key: 'v' },
  { to: '/pipelines', name: 'Pipelines', icon: 'workflow', key: 'p' },
  { to: '/capabilities', name: 'Capabilities', icon: 'boxes', key: 'c' },
  { to: '/calls', name: 'Calls', icon: 'arrow-right', key: 'a' },
  { to: '/skills', name: 'Skills', icon: 'graduation-cap', key: 'k' },
  { to: '/costs', name: 'Costs', icon: 'wallet', key: 'm' },
  { to: '/schedules', name: 'Schedules', icon: 'calendar-clock', key: 's' },
  { to: '/settings', name: 'Settings', icon: 'settings', key: ',' },
] as const satisfies readonly {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
  readonly key: string;
}[];

/** Pages beside the navigation: the palette and the pages that they belong to lead there. */
export const placesBeside = [
  { to: '/costs/ledger', name: 'Ledger', icon: 'wallet' },
  { to: '/aliases', name: 'Aliases of models', icon: 'boxes' },
  { to: '/cache', name: 'Cache', icon: 'boxes' },
] as const;

const below: readonly string[] = ['/', '/runs', '/reviews', '/costs'];
/** On a narrow screen: these at the bottom, the rest in a menu beside them. */
export const placesBelow = places.filter(({ to }) => below.includes(to));
export const placesInMenu = places.filter(({ to }) => !below.includes(to));
