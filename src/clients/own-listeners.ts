import type { OwnListener } from './address-policy.ts';

const defaultPorts: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'postgres:': 5_432,
  'postgresql:': 5_432,
  'temporal:': 7_233,
};

/** Where Capstan's own parts listen, from their URLs; what is no network address (a socket file, port 0) is left out. */
export function findOwnListeners(urls: readonly (string | undefined)[]): readonly OwnListener[] {
  return urls.flatMap((text) => {
    if (text === undefined || !URL.canParse(text)) return [];
    const { protocol, hostname, port, searchParams } = new URL(text);
    const host = searchParams.get('host') ?? hostname.replace(/^\[|\]$/g, '');
    const number = Number(searchParams.get('port') ?? (port || defaultPorts[protocol]));
    const isTcp = host !== '' && !host.startsWith('/') && Number.isInteger(number) && number > 0;
    return isTcp ? [{ host, port: number }] : [];
  });
}
