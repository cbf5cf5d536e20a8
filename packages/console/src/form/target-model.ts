/** The version of a pipeline that each start takes, as one text of a form. */

export interface TargetChoice {
  readonly alias?: string;
  readonly version?: string;
}

/** @param choice `alias NAME`, `version V`, or empty for the latest */
export function readChoice(choice: string): TargetChoice {
  const [kind, ...rest] = choice.split(' ');
  const name = rest.join(' ');
  if (kind === 'alias') return { alias: name };
  return kind === 'version' ? { version: name } : {};
}

export function writeChoice({
  alias,
  version,
}: {
  readonly alias?: string | undefined;
  readonly version?: string | undefined;
}): string {
  if (alias !== undefined) return `alias ${alias}`;
  return version === undefined ? '' : `version ${version}`;
}
