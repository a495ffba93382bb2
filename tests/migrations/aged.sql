-- A dump in which time stands still would expire: move every time in it by as long as it has lain.
DO $$
DECLARE
    lain interval := now() - (SELECT max(at) FROM audit_log);
    change text;
BEGIN
    FOR change IN
        SELECT format('UPDATE %I SET %s', table_name,
                      string_agg(format('%1$I = %1$I + %2$L::interval', column_name, lain), ', '))
          FROM information_schema.columns
         WHERE table_schema = 'public' AND data_type = 'timestamp with time zone'
         GROUP BY table_name
    LOOP
        EXECUTE change;
    END LOOP;
END $$;
