# Travels inside the box: how to get in. No key is in the box (scripts/keys.sh).
Vagrant.configure("2") do |config|
  config.ssh.username = "lab"
  config.ssh.insert_key = false
end
