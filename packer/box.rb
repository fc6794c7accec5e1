# Travels inside the box: how to get in. The key is the machine's own and is not in the box.
Vagrant.configure("2") do |config|
  config.ssh.username = "lab"
  config.ssh.insert_key = false
end
