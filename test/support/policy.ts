// Decides by a resource's policy as AWS does: a deny that fits wins, then an allow; nothing that fits is a no. Strict: what it
// does not know it refuses to judge.

export type Asking = {
  action: string;
  resource: string;
  principal: { service: string } | { account: string } | 'anybody';
  /** Condition keys of the request: `aws:SourceArn`, `aws:SecureTransport`. */
  context: Readonly<Record<string, string>>;
};

type Statement = {
  Effect: string;
  Principal: '*' | Readonly<Record<string, string>>;
  Action: string;
  Resource: string;
  Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

export function isAllowed(policy: string, asking: Asking): boolean {
  const { Version, Statement: statements } = JSON.parse(policy) as {
    Version: string;
    Statement: readonly Statement[];
  };
  if (Version !== '2012-10-17') throw new Error(`no policy of version ${Version}`);
  const fitting = statements.filter((statement) => fits(statement, asking));
  if (fitting.some(({ Effect }) => Effect === 'Deny')) return false;
  return fitting.some(({ Effect }) => Effect === 'Allow');
}

function fits({ Principal, Action, Resource, Condition }: Statement, asking: Asking): boolean {
  const [service] = asking.action.split(':');
  return (
    [asking.action, `${service}:*`].includes(Action) &&
    Resource === asking.resource &&
    isPrincipal(Principal, asking.principal) &&
    Object.entries(Condition ?? {}).every(([operator, values]) => {
      if (operator !== 'ArnEquals' && operator !== 'Bool') throw new Error(`no condition ${operator}`);
      return Object.entries(values).every(([key, value]) => asking.context[key] === value);
    })
  );
}

function isPrincipal(named: Statement['Principal'], principal: Asking['principal']): boolean {
  if (named === '*') return true;
  if (principal === 'anybody') return false;
  if ('service' in principal) return named['Service'] === principal.service;
  return named['AWS'] === `arn:aws:iam::${principal.account}:root`;
}
