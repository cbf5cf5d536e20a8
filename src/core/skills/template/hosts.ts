/**
 * Where a text may lead on the network: URLs, whatever their scheme, and hosts that are written without one. Doubtful
 * cases count as hosts; a plain name with dots alone does not, because file names look the same.
 */
const url = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/|(?:https?|wss?|ftp|file|data|blob|javascript|mailto):|[\\/]{2})/i;

/** Browsers read `\` like `/`, and no slash or one like two after a well-known scheme. */
const authority = /(?:(?:https?|wss?|ftp):[\\/]*|(?<![\\/])[\\/]{2,})([^\s\\/?#"'<>]+)/gi;
const address = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])/g;
const withPort =
  /(?<![\w.-])(?:\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*|localhost):\d{1,5}(?!\d)/gi;

/** Also `media://` references. */
export function isUrl(text: string): boolean {
  return url.test(text);
}

/** Hosts with their ports, in lower case, without user names. */
export function findHosts(text: string): string[] {
  const authorities = [...text.matchAll(authority)].map(([, found = '']) =>
    found.slice(found.lastIndexOf('@') + 1),
  );
  const others = [...text.matchAll(address), ...text.matchAll(withPort)].map(([found]) => found);
  return [...authorities, ...others].map((host) => host.toLowerCase());
}
