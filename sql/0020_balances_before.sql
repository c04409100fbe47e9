-- The balance that each of several stakes of an agent meets, in their order.
-- compat: older programs do not call it.

create function balances_before(balance integer, stakes integer[])
  returns integer[]
  language plpgsql
  immutable
  strict
as $$
declare
  met integer[] := '{}';
  remaining integer := balance;
  stake integer;
begin
  foreach stake in array stakes loop
    met := met || remaining;
    -- A stake that is too high takes nothing from those behind it.
    if stake <= remaining then
      remaining := remaining - stake;
    end if;
  end loop;
  return met;
end
$$;
