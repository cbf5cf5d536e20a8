/** What was found, as a line for each client. */
import type { Finding } from './clients.ts';

export interface ProviderFinding extends Finding {
  /** The kind of wrap behind the model. */
  readonly provider: string;
}

function unique<Item>(items: readonly Item[]): Item[] {
  return [...new Set(items)];
}

/** @param providers the columns */
export function toTable(findings: readonly ProviderFinding[], providers: readonly string[]): string {
  const rows = unique(findings.map(({ client }) => client)).map((client) => {
    const own = findings.filter((found) => found.client === client);
    const cells = providers.map((provider) => {
      const failed = own.filter((found) => found.provider === provider && found.fault !== null);
      return failed.length === 0 ? 'works' : `**fails**: ${failed.map(({ feature }) => feature).join(', ')}`;
    });
    return [client, unique(own.map(({ feature }) => feature)).join(', '), ...cells];
  });
  const head = ['client', 'what it does', ...providers.map((provider) => `provider of kind \`${provider}\``)];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export function toCount(findings: readonly ProviderFinding[]): string {
  const clients = unique(findings.map(({ client }) => client));
  const broken = unique(findings.filter(({ fault }) => fault !== null).map(({ client }) => client));
  const works = findings.filter(({ fault }) => fault === null);
  return `${clients.length - broken.length} of ${clients.length} clients work, with ${works.length} of ${findings.length} uses`;
}
