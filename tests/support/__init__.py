"""What tests are made of: servers, clocks, witnesses, the reading of traces and the reporting of failures."""
