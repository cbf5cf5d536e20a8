import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { HookList } from '../../hook/hook-list.tsx';
import type { settingsTabs } from '../../searches.ts';
import { PageHead } from '../../shared/parts.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { AuditTab } from './audit-tab.tsx';
import { KeysTab } from './keys-tab.tsx';
import { LimitsTab } from './limits-tab.tsx';
import { ProjectsTab } from './projects-tab.tsx';
import { SecretsTab } from './secrets-tab.tsx';
import { SessionsTab } from './sessions-tab.tsx';
import { ThemeTab } from './theme-tab.tsx';
import { WebhooksTab } from './webhooks-tab.tsx';

type SettingsTab = (typeof settingsTabs)[number];

const tabs: readonly Tab<SettingsTab>[] = [
  { name: 'access', label: 'Keys' },
  { name: 'sessions', label: 'Sessions' },
  { name: 'projects', label: 'Projects' },
  { name: 'webhooks', label: 'Webhooks' },
  { name: 'hooks', label: 'Hooks' },
  { name: 'secrets', label: 'Secrets' },
  { name: 'audit', label: 'Audit' },
  { name: 'limits', label: 'Limits' },
  { name: 'theme', label: 'Theme' },
];

const views: Readonly<Record<SettingsTab, () => ReactElement>> = {
  access: KeysTab,
  sessions: SessionsTab,
  projects: ProjectsTab,
  webhooks: WebhooksTab,
  hooks: HookList,
  secrets: SecretsTab,
  audit: AuditTab,
  limits: LimitsTab,
  theme: ThemeTab,
};

export function SettingsPage(): ReactElement {
  const { tab = 'access' } = useSearch({ from: '/settings' });
  const navigate = useNavigate({ from: '/settings' });
  const View = views[tab];
  return (
    <>
      <PageHead title="Settings" />
      <div className="mb-4 border-b border-line">
        <Tabs
          label="Settings"
          tabs={tabs}
          chosen={tab}
          onChoose={(chosen) => void navigate({ search: { tab: chosen }, replace: true })}
        />
      </div>
      <View />
    </>
  );
}
